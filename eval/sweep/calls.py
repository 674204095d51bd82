"""Calls of a cell: what its memory's config expects, and one answer for each question.

Systems know their own calls (:class:`memsys.call_model.PlansCalls`); ``memsys sweep check`` compares them with
the ledgers of real runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls, PlansCalls, reply_tokens
from memsys.protocol import MayAnswer, MemoryConfig


def shape_of_counts(counts: Mapping[str, Any], by_kind: Mapping[str, int]) -> DataShape:
    """Return the sizes from the data of ``run.json``, questions by category; sessions count as equally long."""
    turns, sessions = counts["turns_per_conversation"], counts.get("sessions") or 1
    return DataShape(turns, [round(sum(turns) / sessions)] * sessions, dict(by_kind))


def memory_calls(config: MemoryConfig, shape: DataShape) -> Sequence[ExpectedCalls] | None:
    """Return a memory system's expected calls of the backbone; ``None`` where its config does not say."""
    return config.expected_calls(shape) if isinstance(config, PlansCalls) else None


def context_tokens(config: MemoryConfig, shape: DataShape) -> float:
    """Return the tokens of a question's context; 0 where the config does not say."""
    return config.context_tokens(shape) if isinstance(config, PlansCalls) else 0.0


def reader_calls(config: Any, memory: MemoryConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return one answer for each question, from the reader's role of its kind; none where the memory answers itself."""
    if isinstance(memory, MayAnswer) and memory.answers:
        return []
    found: dict[str, float] = {}
    for kind, number in shape.questions.items():
        role = config.role_of(kind, options=config.adversarial_options) or config.default
        found[role] = found.get(role, 0) + number
    prompt = 60 + shape.question_tokens + context_tokens(memory, shape)
    return [
        ExpectedCalls("answer", role, number, prompt, reply_tokens(config.roles.get(role, {}), SHORT_TOKENS))
        for role, number in found.items()
    ]
