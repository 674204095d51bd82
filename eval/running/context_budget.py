"""The same room for every memory: a context cut to a number of tokens, its lowest-ranked memories first.

Tokens are estimated by script, so that the room is the same for every system and backbone.
"""

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from memsys.scripts import estimated_tokens
from memsys.vocabulary import Retrieval

#: What ends the decoration before a memory's text: of a list mark, a number, a label, a date. Words and punctuation
#: marks of sentences do not: there the text is a part of another one.
_MARK = r"(?:[:;|>*•·#\])}\"“«\t：；】）]|(?<!\S)[-–—]|\d\.)[^\S\n]*"
_BEFORE = re.compile(rf"(?:^|{_MARK})[^\S\n]*$")
#: What begins the decoration after it.
_AFTER = re.compile(r"[^\S\t]*(?:$|[;|<(\[{\"”»\t；（【]|[-–—]\s)")
#: A label right after a text: A-Mem's released code writes fields without a separator.
_LABEL = re.compile(r"\w+ \w+:")
#: Between two lines of a memory: a space, or an end of a line and what precedes a text.
_BETWEEN = rf"(?:\s+|\s*\n[^\n]*?{_MARK})"


@dataclass(frozen=True, slots=True)
class _Place:
    """One place of a memory's text in a context, where it is an item.

    Attributes:
        memory: its number.
        start: its first character.
        end: after its last one.
        own: false where it lies in another memory's text, and stays when that leaves.
    """

    memory: int
    start: int
    end: int
    own: bool


class _Items:
    """The memories in a context.

    Args:
        context: that the reader is to see.
        texts: of the memories, best first.
    """

    def __init__(self, context: str, texts: Sequence[str]) -> None:
        self._lines = context.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)][:-1]
        places = _places(context, texts)
        on = self._by_line(places)
        alone = {
            place for place in places if all(_memories(on[number]) == {place.memory} for number in self._of(place))
        }
        # What a memory with lines of its own has on another one's line is said again by that.
        has_lines = _memories(alone)
        self.places = [place for place in places if place in alone or place.memory not in has_lines]
        self._on = self._by_line(self.places)

    def _of(self, place: _Place) -> range:
        """Return the numbers of a place's lines."""
        return range(bisect(self._starts, place.start) - 1, bisect(self._starts, place.end - 1))

    def _by_line(self, places: Iterable[_Place]) -> Mapping[int, list[_Place]]:
        found = defaultdict[int, list[_Place]](list)
        for place in places:
            for number in self._of(place):
                found[number].append(place)
        return found

    def without(self, dropped: Collection[int]) -> str:
        """Return the context without some memories' lines; of a line that another memory is in, without their texts."""
        left = []
        for number, (start, line) in enumerate(zip(self._starts, self._lines, strict=True)):
            places = self._on.get(number, [])
            leave = [place for place in places if place.own and place.memory in dropped]
            stay = [place for place in places if place.memory not in dropped]
            if not leave:
                left.append(line)
            elif stay:
                left.append("".join(c for at, c in enumerate(line, start) if _in(stay, at) or not _in(leave, at)))
        return "\n".join(left)


def _memories(places: Iterable[_Place]) -> set[int]:
    return {place.memory for place in places}


def _in(places: Iterable[_Place], at: int) -> bool:
    return any(place.start <= at < place.end for place in places)


def within_budget(retrieval: Retrieval, budget: int) -> Retrieval:
    """Cut a retrieval's context to a budget.

    The items of the memories leave it, the last one first, until one memory is left; what then is still too long is cut
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
    memories = [*(retrieval.hits[place] for place in shown), *retrieval.also_shown]
    items = _Items(context, [memory.text for memory in memories])
    if not any(place.memory < len(shown) for place in items.places):
        return replace(retrieval, context=_cut(context, budget))  # it was written from them
    dropped = set[int]()
    while len(shown) > 1 and estimated_tokens(context) > budget:
        shown.pop()
        dropped.add(len(shown))
        context = items.without(dropped)
    return replace(retrieval, context=_cut(context, budget), shown=tuple(shown))


def _places(context: str, texts: Sequence[str]) -> list[_Place]:
    """Find the items of a context that are texts of memories, given best first.

    The longest text is looked for first, so that no memory is found within another one; where the context has it again,
    that is its place too unless another memory has it.
    """
    numbers = defaultdict[str, list[int]](list)
    for number, text in enumerate(texts):
        numbers["\n".join(_lines(text))].append(number)
    longest = sorted(filter(None, numbers), key=len, reverse=True)
    items = {text: _items(context, text) for text in longest}
    found: list[_Place] = []

    def free(text: str) -> list[tuple[int, int]]:
        return [
            (start, end) for start, end in items[text] if not any(start < one.end and one.start < end for one in found)
        ]

    for text in longest:
        found += [_Place(number, *span, own=True) for number, span in zip(numbers[text], free(text), strict=False)]
    has_own = _memories(found)
    for text in longest:
        *_, last = numbers[text]
        found += [_Place(last, *span, own=True) for span in free(text)]
        if has_own.isdisjoint(numbers[text]):
            found += [_Place(last, *span, own=False) for span in items[text][:1]]
    return found


def _items(context: str, text: str) -> list[tuple[int, int]]:
    """Return where a text is an item of a context, with nothing but decoration around it; the shortest first."""
    found = []
    for match in _pattern(text).finditer(context):
        before = context[context.rfind("\n", 0, match.start()) + 1 : match.start()]
        after = context[match.end() :].partition("\n")[0]
        if _BEFORE.search(before) and (_AFTER.match(after) or (" " in text and _LABEL.match(after))):
            found.append(match.span())
    return sorted(found, key=lambda span: span[1] - span[0])


@lru_cache(maxsize=1 << 12)  # a memory is found by many questions
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(_BETWEEN.join(r"\s+".join(map(re.escape, line.split())) for line in text.split("\n")))


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def _cut(text: str, budget: int, *, from_start: bool = False) -> str:
    """Cut a text at its end, or at its start, until it has at most so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimated_tokens(text[len(text) - middle :] if from_start else text[:middle]) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[len(text) - low :] if from_start else text[:low]
