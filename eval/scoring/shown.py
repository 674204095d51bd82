"""Memories that are in the question's context."""

from collections.abc import Sequence
from functools import lru_cache

from eval.runs.records import HitRecord, RetrievalRecord

#: Numbers of a trace that count what a limit kept out of the context. A system that counts more than its hits there
#: (linked notes, a portrait) does so under the same name.
LEFT_OUT = ("dropped", "dropped_lines", "left_out", "pages_cut")
#: Entries of a trace that name memories shown besides the hits, in rows that do not hold those.
_BESIDES = ("facts", "linked_ids")
#: Size of the memories in a context, in characters, next to ``hit_chars``, that of all that was retrieved.
SHOWN_CHARS = "shown_chars"
#: Size of a context in tokens, estimated by script; not in scores of versions up to 0.3.0.
CONTEXT_ESTIMATE = "context_estimated_tokens"


def shown_hits(retrieval: RetrievalRecord) -> Sequence[HitRecord] | None:
    """Return the hits in a context: of those that the memory names as shown, the ones whose text the context holds.

    A context that was written from its hits, as a summary is, holds none of them, whatever it was made of.

    Returns:
        ``None`` where that is not known: such a context does not say which turns are still in it; or the row is of a
        version that did not store what was shown, and its trace says that something was left out.
    """
    if retrieval.shown is None and any(retrieval.trace.get(name) for name in LEFT_OUT):
        return None
    places = range(len(retrieval.hits)) if retrieval.shown is None else retrieval.shown
    named, context = [retrieval.hits[place] for place in places], _one_spaced(retrieval.context)
    found = [hit for hit in named if _is_in(hit, context)]
    return None if named and not found and context else found


def shown_memories(retrieval: RetrievalRecord) -> Sequence[HitRecord] | None:
    """Return all memories in a context: the hits of :func:`shown_hits`, then what is shown besides them.

    Returns:
        ``None`` where that is not known: see :func:`shown_hits`; or the row is of a version that did not store what is
        shown besides the hits, and its trace says that something was.
    """
    return with_others(retrieval, shown_hits(retrieval))


def with_others(retrieval: RetrievalRecord, hits: Sequence[HitRecord] | None) -> Sequence[HitRecord] | None:
    """Return what :func:`shown_memories` does, where ``hits`` are known to be those of :func:`shown_hits`."""
    if hits is None or (retrieval.also_shown is None and any(map(retrieval.trace.get, _BESIDES))):
        return None
    context = _one_spaced(retrieval.context)
    return [*hits, *(memory for memory in retrieval.also_shown or () if _is_in(memory, context))]


def _is_in(memory: HitRecord, context: str) -> bool:
    return all(_one_spaced(line) in context for line in memory.text.splitlines())


@lru_cache(maxsize=1 << 13)  # each retrieval is looked at for several measures, each memory is found by many questions
def _one_spaced(text: str) -> str:
    return " ".join(text.split())


def texts_of(retrieval: RetrievalRecord, shown: Sequence[HitRecord] | None) -> list[str] | None:
    """Return the texts of the memories in a context.

    Args:
        retrieval: with the context.
        shown: memories in it, as :func:`shown_hits` found them.

    Returns:
        ``None`` where they are not known: see :func:`shown_hits`; or the hits hold no text of their own, and represent
        a conversation that is shown as a whole.
    """
    if shown is None or (retrieval.hits and not any(hit.text for hit in retrieval.hits)):
        return None
    return [hit.text for hit in shown]
