"""Reading: each scope's nearest memories, shown person by person (Mem0's read path)."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.facts.batches import TEXTS
from memsys.facts.stored import StoredFact
from memsys.index.vector import SCORE_DECIMALS
from memsys.llm.contract import LanguageModel


@dataclass(frozen=True, slots=True)
class ScopedHit:
    """A retrieved memory with whose it is and its cosine."""

    owner: str
    memory: StoredFact
    score: float


def best_first(found: Sequence[ScopedHit]) -> list[ScopedHit]:
    """Sort by score; ties as they come."""
    return sorted(found, key=lambda each: -round(each.score, SCORE_DECIMALS))


async def format_context(
    llm: LanguageModel, found: Sequence[ScopedHit], owners: Sequence[str], max_tokens: int | None
) -> tuple[str, int]:
    """Write each owner's memories under their name, best first; where there is one owner, without the name.

    Args:
        llm: counts tokens, where there is a limit.
        found: best first.
        owners: in the order they are shown, which is the same for every question, as in Mem0's prompt.
        max_tokens: tokens of all lines; up to the first memory that does not fit.

    Returns:
        The context, and how many memories were left out.
    """
    kept = await _within(llm, found, max_tokens) if max_tokens is not None else list(found)
    blocks = []
    for owner in owners:
        lines = [each.memory.line for each in kept if each.owner == owner]
        head = [TEXTS("memories_of", owner=owner)] if len(owners) > 1 and lines else []
        blocks.append("\n".join([*head, *lines]))
    return "\n\n".join(block for block in blocks if block), len(found) - len(kept)


async def _within(llm: LanguageModel, found: Sequence[ScopedHit], max_tokens: int) -> list[ScopedHit]:
    kept: list[ScopedHit] = []
    for each in found:
        max_tokens -= await llm.count_tokens(each.memory.line + "\n")
        if max_tokens < 0:
            break
        kept.append(each)
    return kept
