"""Summaries of themes: role ``theme`` (paper, appendix C)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS
from memsys.llm.contract import LanguageModel, Role
from memsys.xmemory.space import part_of


@dataclass(frozen=True, slots=True)
class Summary:
    """Name of a theme. ``fallback``: the reply was blank."""

    text: str
    fallback: bool


async def summarise(
    llm: LanguageModel, role: Role, facts: Sequence[str], vectors: Vectors, key: str, *, as_written: bool = False
) -> Summary:
    """Name a theme with one call.

    The fact nearest the centroid replaces a blank reply.

    Args:
        llm: the backbone.
        role: the role ``theme``.
        facts: the theme's facts, as texts.
        vectors: theirs, ``(len(facts), d)``.
        key: what the call is about.
        as_written: the reply is the summary as it is, with its line breaks, a blank one too.
    """
    reply = await llm.ask(role, {"facts": "\n".join(f"- {fact}" for fact in facts)}, key=key)
    if as_written:
        return Summary(reply.text.strip(), not reply.text.strip())
    text = " ".join(reply.text.split())
    return Summary(text, False) if text else Summary(facts[central(vectors)], True)


def central(vectors: Vectors) -> int:
    """Return the row ``(n, d)`` of highest cosine with the centroid; ties: the first."""
    cosines = vectors.astype(np.float64) @ part_of(vectors).direction
    return int(np.round(cosines, SCORE_DECIMALS).argmax())
