"""Expected calls of the roles that systems of notes share."""

from typing import Any

from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls, reply_tokens, template_tokens

#: Share of notes that evolve when they are compared with their neighbours (A-Mem and CLAG, SmolLM2: 84 of 92).
EVOLVED = 0.91
#: Tokens of what the backbone writes about a note (keywords, context, tags) and of an evolution's reply.
NOTE_TOKENS, EVOLUTION_TOKENS = 90, 220


def analysis_calls(config: Any, shape: DataShape, kind: str) -> ExpectedCalls:
    """Return one analysis for each turn; ``kind`` is ``joint`` or ``staged``."""
    role = next(iter(config.roles)) if kind == "staged" else "analyse"
    settings = config.roles[role]
    prompt = template_tokens("memsys/notes/prompts/analyse.txt") + shape.turn_tokens
    shared = f"{role} {sorted(settings.items(), key=str)}"
    return ExpectedCalls("prepare", role, sum(shape.turns), prompt, reply_tokens(settings, NOTE_TOKENS), shared)


def evolution_calls(config: Any, shape: DataShape, calls: float, shared: str) -> ExpectedCalls:
    """Return one comparison with the neighbours for each note."""
    settings = config.roles.get("evolve", {})
    note = shape.turn_tokens + 60
    prompt = template_tokens("memsys/notes/prompts/evolve.txt") + (1 + config.k_local) * note
    return ExpectedCalls("write", "evolve", calls, prompt, reply_tokens(settings, EVOLUTION_TOKENS), shared)


def keyword_calls(config: Any, shape: DataShape, prompt_of: str = "notes") -> ExpectedCalls:
    """Return the keywords of each question; systems with the same ``prompt_of`` and settings make the same calls."""
    settings = config.roles["keywords"]
    prompt = template_tokens("memsys/notes/prompts/keywords.txt") + shape.question_tokens
    shared = f"keywords {prompt_of} {sorted(settings.items(), key=str)}"
    return ExpectedCalls("retrieve", "keywords", shape.asked, prompt, reply_tokens(settings, SHORT_TOKENS), shared)
