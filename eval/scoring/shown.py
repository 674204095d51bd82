"""Which of the memories that a question retrieved stand in its context."""

from collections.abc import Sequence

from eval.runs.records import HitRecord, RetrievalRecord

#: Numbers of a trace that count what a limit kept out of the context. A system that counts more than its hits there
#: (linked notes, a portrait) does so under the same name.
LEFT_OUT = ("dropped", "dropped_lines", "left_out", "pages_cut")
#: Size of the memories in a context, in characters, beside ``hit_chars``, that of all that was retrieved.
SHOWN_CHARS = "shown_chars"


def shown_hits(retrieval: RetrievalRecord) -> Sequence[HitRecord] | None:
    """The hits in a context.

    Returns:
        ``None`` where that is not known: in a row of a version that did not store it, whose trace says that something
        was left out.
    """
    if retrieval.shown is not None:
        return [retrieval.hits[place] for place in retrieval.shown]
    if any(retrieval.trace.get(name) for name in LEFT_OUT):
        return None
    return retrieval.hits


def shown_texts(retrieval: RetrievalRecord) -> list[str] | None:
    """Texts of the memories in a context.

    Returns:
        ``None`` where they are not known: see :func:`shown_hits`; or the hits hold no text of their own, and stand for
        a conversation that is shown as a whole.
    """
    shown = shown_hits(retrieval)
    if shown is None or (retrieval.hits and not any(hit.text for hit in retrieval.hits)):
        return None
    return [hit.text for hit in shown]
