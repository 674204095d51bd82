"""Expected calls of GAM."""

from math import ceil

from baselines.gam.config import GamConfig
from memsys.call_model import (
    ENVELOPE_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)

#: Tokens of an abstract, of a plan, of the integrated text and of further questions.
ABSTRACT_TOKENS, PLAN_TOKENS, FINDINGS_TOKENS, REQUEST_TOKENS = 150, 100, 200, 60
#: Rounds per question, an assumption: between one and the three that are allowed.
ROUNDS = 2.0


def expected_calls(config: GamConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return an abstract for each page, and plan, integration, check and requests for each round but the last."""
    pages, page = _pages(config, shape)
    rules = config.research_rules
    per_conversation = pages / max(len(shape.turns), 1)
    abstract = reply_tokens(config.roles["abstract"], ABSTRACT_TOKENS)
    findings = reply_tokens(config.roles["integrate"], FINDINGS_TOKENS)
    rounds = min(ROUNDS, rules.max_rounds) * shape.asked
    hits = min(2 * rules.top_k, per_conversation)
    asked = shape.question_tokens
    listed = per_conversation * (abstract + 5) if rules.abstracts_shown else 0

    def prompt(role: str, shown: float) -> float:
        return template_tokens(f"baselines/gam/prompts/{role}.txt") + shown

    def reply(role: str, usual: float) -> float:
        return reply_tokens(config.roles[role], usual)

    key = settings_key(config, "research", "context")
    found = [
        ExpectedCalls("write", "abstract", pages, prompt("abstract", page + listed / 2), abstract, key),
        ExpectedCalls("retrieve", "plan", rounds, prompt("plan", listed + asked), reply("plan", PLAN_TOKENS)),
        ExpectedCalls("retrieve", "check", rounds, prompt("check", findings + asked), reply("check", ENVELOPE_TOKENS)),
        ExpectedCalls(
            "retrieve", "requests", rounds / 2, prompt("requests", findings + asked), reply("requests", REQUEST_TOKENS)
        ),
    ]
    if config.context["shown"] != "pages":
        shown = prompt("integrate", findings + asked + hits * page)
        found.append(ExpectedCalls("retrieve", "integrate", rounds, shown, findings))
    return found


def context_tokens(config: GamConfig, shape: DataShape) -> float:
    """Return the tokens of the integrated text, the pages found, or both."""
    pages, page = _pages(config, shape)
    shown = config.context["shown"]
    whole = reply_tokens(config.roles["integrate"], FINDINGS_TOKENS) if shown != "pages" else 0.0
    if shown != "integrated":
        whole += min(2 * config.research["top_k"], pages / max(len(shape.turns), 1)) * page
    return float(min(whole, config.context["max_tokens"] or whole))


def _pages(config: GamConfig, shape: DataShape) -> tuple[float, float]:
    """Return the number of pages, and the tokens of one."""
    limit = config.pages["max_tokens"]
    counted = [ceil(turns * shape.turn_tokens / limit) if limit else 1 for turns in shape.sessions]
    return float(sum(counted)), sum(shape.turns) * shape.turn_tokens / max(sum(counted), 1) + 20
