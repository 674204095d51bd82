"""Expected calls of MemFly."""

from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls
from memsys.memfly.config import MemflyConfig
from memsys.notes.calls import NOTE_TOKENS

#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 1600.0


def expected_calls(config: MemflyConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return an ingestion and a comparison for each turn, and one to three rounds for each question."""
    notes, rounds = sum(shape.turns), 1.8
    found = [ExpectedCalls("prepare", "ingest", notes, 350 + shape.turn_tokens, NOTE_TOKENS, "memfly.ingest")]
    if not config.ablate["update"]:
        compared = config.candidates["kept"] * (shape.turn_tokens + 40)
        prompt = 450 + shape.turn_tokens + compared
        found.append(ExpectedCalls("write", "update", notes - len(shape.turns), prompt, 40 * config.candidates["kept"]))
    evidence = CONTEXT_TOKENS
    asked = shape.asked
    if config.ablate["ier"]:
        return [*found, ExpectedCalls("retrieve", "intent", asked, 200, 40)]
    return [
        *found,
        ExpectedCalls("retrieve", "intent", asked * rounds, 200, 40),
        ExpectedCalls("retrieve", "draft", asked * rounds, 100 + evidence, SHORT_TOKENS),
        ExpectedCalls("retrieve", "sufficient", asked * rounds, 150 + evidence, 40),
        ExpectedCalls("retrieve", "subquery", asked * (rounds - 1), 150 + evidence, SHORT_TOKENS),
    ]


def context_tokens(config: MemflyConfig, shape: DataShape) -> float:
    """Return the context size that the paper reports."""
    return CONTEXT_TOKENS
