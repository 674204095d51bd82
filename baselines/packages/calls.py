"""Expected calls of packages, from the counts in their presets."""

from math import ceil

from baselines.packages.config import PackageConfig
from memsys.call_model import DataShape, ExpectedCalls

#: The proxy's name for a chat completion in the ledger.
ROLE = "chat"


def expected_calls(config: PackageConfig, shape: DataShape) -> list[ExpectedCalls] | None:
    """Return the preset's calls per write and per question; ``None`` where it does not state them."""
    counts = config.call_counts
    if counts is None:
        return None
    writes = sum(ceil(turns / config.turns_per_write) for turns in shape.sessions)
    written = counts.template_tokens + config.turns_per_write * shape.turn_tokens
    asked = counts.template_tokens + shape.question_tokens
    found = [
        ExpectedCalls("write", ROLE, writes * counts.per_write, written, counts.reply_tokens),
        ExpectedCalls("retrieve", ROLE, shape.asked * counts.per_question, asked, counts.reply_tokens),
    ]
    return [one for one in found if one.calls]


def context_tokens(config: PackageConfig, shape: DataShape) -> float:
    """Return the tokens of the retrieved memories, each as long as a turn."""
    return config.k * shape.turn_tokens
