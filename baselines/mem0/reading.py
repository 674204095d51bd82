"""Context of the reader: each person's memories and, in Mem0g, the relations around the question's entities."""

from collections.abc import Sequence
from dataclasses import dataclass

from baselines.mem0.roles import TEXTS
from memsys.facts.formatting import ScopedHit, format_context
from memsys.llm.contract import LanguageModel
from memsys.vocabulary import Hit


@dataclass(frozen=True, slots=True)
class Relation:
    """A retrieved relation with whose graph it is of, as a line and as a hit."""

    owner: str
    line: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class Mem0Context:
    """The context, how many memories and relations its limit left out, and how many of each are in it."""

    text: str
    left_out: int
    memories: int
    relations: int


async def shown_with_relations(
    llm: LanguageModel,
    found: Sequence[ScopedHit],
    relations: Sequence[Relation],
    owners: Sequence[str],
    max_tokens: int | None,
) -> Mem0Context:
    """Write the memories, then the relations, person by person; relations get the room that memories leave."""
    memories, left_out = await format_context(llm, found, owners, max_tokens)
    kept = list(relations)
    if max_tokens is not None:
        kept = await _within(llm, kept, max_tokens - await llm.count_tokens(memories + "\n"))
    blocks = [memories]
    for owner in owners:
        lines = [each.line for each in kept if each.owner == owner]
        heading = TEXTS("relations_of", owner=owner) if len(owners) > 1 else TEXTS("relations")
        blocks.append("\n".join([heading, *lines]) if lines else "")
    text = "\n\n".join(block for block in blocks if block)
    return Mem0Context(text, left_out + len(relations) - len(kept), len(found) - left_out, len(kept))


async def _within(llm: LanguageModel, relations: Sequence[Relation], max_tokens: int) -> list[Relation]:
    kept: list[Relation] = []
    for each in relations:
        max_tokens -= await llm.count_tokens(each.line + "\n")
        if max_tokens < 0:
            break
        kept.append(each)
    return kept
