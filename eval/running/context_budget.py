"""The same room for every memory: a context cut to a number of tokens, its lowest-ranked memories first.

Tokens are estimated by script, so that the room is the same for every system and backbone.
"""

from collections.abc import Sequence
from dataclasses import replace

from memsys.scripts import estimated_tokens
from memsys.vocabulary import Retrieval


def within_budget(retrieval: Retrieval, budget: int) -> Retrieval:
    """Cut a retrieval's context to a budget.

    The lines of the memories leave it, the last one first, until one memory is left; what then is still too long is cut
    at its end. Of a context that is shown as a whole, without a ranking, the end stays: what was said last; which turns
    that is, nobody says.

    Args:
        retrieval: of a memory.
        budget: tokens that the context may have.

    Returns:
        The retrieval with the shorter context, and without the memories that left it among those shown.
    """
    context = retrieval.context
    if retrieval.answer is not None or estimated_tokens(context) <= budget:
        return retrieval
    if not any(hit.text for hit in retrieval.hits):
        text = _cut(context, budget, from_start=not retrieval.ranked)
        return replace(retrieval, context=text, traced=retrieval.traced and not retrieval.hits)
    shown = list(range(len(retrieval.hits)) if retrieval.shown is None else retrieval.shown)
    if not any(
        _lines(retrieval.hits[place].text)[0] in context for place in shown if retrieval.hits[place].text.strip()
    ):
        return replace(retrieval, context=_cut(context, budget))  # it was written from them
    while len(shown) > 1 and estimated_tokens(context) > budget:
        dropped = retrieval.hits[shown.pop()].text
        context = _without(context, dropped, [retrieval.hits[place].text for place in shown])
    return replace(retrieval, context=_cut(context, budget), shown=tuple(shown))


def _without(context: str, dropped: str, kept: Sequence[str]) -> str:
    """Remove the lines of a context that hold a memory's lines; of a line that another memory is in, its text alone."""
    pieces, others = _lines(dropped), [line for text in kept for line in _lines(text)]
    left = []
    for line in context.split("\n"):
        held = [piece for piece in pieces if piece in line]
        if not held:
            left.append(line)
        elif any(other in line for other in others):
            for piece in held:
                line = line if piece in others else line.replace(piece, "")
            left.append(line)
    return "\n".join(left)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _cut(text: str, budget: int, *, from_start: bool = False) -> str:
    """Cut a text at its end, or at its start, until it has at most so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimated_tokens(text[len(text) - middle :] if from_start else text[:middle]) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[len(text) - low :] if from_start else text[:low]
