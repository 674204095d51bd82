"""The same room for every memory: a context cut to a number of tokens, its lowest-ranked memories first.

Tokens are estimated by script, so that the room is the same for every system and backbone.
"""

import re
import unicodedata
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, compress
from typing import TypeAlias

from memsys.scripts import estimated_tokens, has_joined_words
from memsys.vocabulary import Retrieval

#: What ends the decoration before a memory's text: of a list mark, a number, a label, a date.
_MARK = r"(?:[:;|>*•·#\])}\"“«\t：；】）]|(?<!\S)[-–—]|\d\.)[^\S\n]*"
_BEFORE = re.compile(rf"(?:^|{_MARK})[^\S\n]*\Z", re.MULTILINE)
#: What begins the decoration after it.
_MARK_AFTER = r"[^\S\t\n]*(?:$|[;|<(\[{\"”»\t；（【]|[-–—]\s)"
_AFTER = re.compile(_MARK_AFTER, re.MULTILINE)
#: The same with quotes, brackets, commas and ends of sentences, which may also be parts of another text.
_BEFORE_PART = re.compile(
    rf"(?:^|{_MARK}|(?<!\w)['‘‚„「『(\[{{<]|[，。！？、]|[,.!?…]['\"’”»)\]]*[^\S\n])[^\S\n]*\Z", re.MULTILINE
)
_AFTER_PART = re.compile(
    rf"{_MARK_AFTER}|[,.!?…'’)\]}}>](?!\w)|[，。！？、」』]|(?<=[。！？])|(?<=[.!?…])\s|(?<=[.!?…]['\"’”)])\s",
    re.MULTILINE,
)
#: Between two such parts; it leaves with the first.
_SEPARATOR = re.compile(r"[,.!?…，。！？、]?[^\S\n]*")
#: Characters of a mark before a text, white space apart.
_LONGEST_MARK = 4
#: A label right after a text: A-Mem's released code writes fields without a separator.
_LABEL = re.compile(r"\w+ \w+:")
#: Between two lines of a memory: a space, or an end of a line and what precedes a text.
_BETWEEN = rf"(?:\s+|\s*\n[^\n]*?{_MARK})"


class _Kind(IntEnum):
    """Surroundings of a memory's text in a context, the surest first."""

    ITEM = 0
    """Decoration: the text is an item of a list."""
    PART = 1
    """Marks that sentences have too."""
    WORDS = 2
    """Other words."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One place of a memory's text in a context.

    Attributes:
        memory: its number.
        start: its first character.
        end: after its last one.
        own: false where it lies in another memory's text, and stays when that leaves.
        kind: what surrounds it.
    """

    memory: int
    start: int
    end: int
    own: bool
    kind: "_Kind"


#: Kind, first character, after the last one.
_Span: TypeAlias = tuple[_Kind, int, int]


class _Items:
    """The memories in a context.

    Args:
        context: that the reader is to see.
        texts: of the memories, best first.
        last: the kind of places that is looked for last.
    """

    def __init__(self, context: str, texts: Sequence[str], last: _Kind = _Kind.PART) -> None:
        self._lines = context.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)][:-1]
        places = _places(context, texts, last)
        on = self._by_line(places)
        of_one = {number for number, there in on.items() if len(_memories(there)) == 1}
        alone = {place for place in places if of_one.issuperset(self._of(place))}
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
                left.append(_without(line, start, leave, stay))
        return "\n".join(left)


def _memories(places: Iterable[_Place]) -> set[int]:
    return {place.memory for place in places}


def _without(line: str, begin: int, leave: Iterable[_Place], stay: Iterable[_Place]) -> str:
    """Return a line that begins at some character of the context without what leaves it and does not stay."""
    kept = bytearray(b"\1" * len(line))
    for places, value in ((leave, b"\0"), (stay, b"\1")):
        for place in places:
            start, end = max(place.start - begin, 0), min(place.end - begin, len(line))
            kept[start:end] = value * (end - start)
    return "".join(compress(line, kept))


def within_budget(retrieval: Retrieval, budget: int) -> Retrieval:
    """Cut a retrieval's context to a budget.

    The items of the memories leave it, the last one first, until one memory is left; what then is still too long is cut
    at its end. Of a context that is shown as a whole, without a ranking, the end stays: what was said last; which turns
    these are is not stated.

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
    items = _listed(context, [memory.text for memory in memories], len(shown))
    if items is None:
        return replace(retrieval, context=_cut(context, budget))  # it was written from them
    dropped = set[int]()
    while len(shown) > 1 and estimated_tokens(context) > budget:
        shown.pop()
        dropped.add(len(shown))
        context = items.without(dropped)
    return replace(retrieval, context=_cut(context, budget), shown=tuple(shown))


def _listed(context: str, texts: Sequence[str], hits: int) -> _Items | None:
    """Return the memories in a context, the hits among them first; ``None`` where it was written from them.

    It was not where a hit is an item, half of the hits are parts of lines, or all are there literally.
    """
    known = {number for number, text in enumerate(texts[:hits]) if text.strip()}
    items = _Items(context, texts)
    found = [place for place in items.places if place.memory in known]
    if any(place.kind is _Kind.ITEM for place in found) or 2 * len(_memories(found)) >= len(known) > 0:
        return items
    items = _Items(context, texts, _Kind.WORDS)
    return items if known and known <= _memories(items.places) else None


def _places(context: str, texts: Sequence[str], last: _Kind) -> list[_Place]:
    """Find the texts of memories, given best first, in a context.

    The longest text is looked for first, so that no memory is found within another one; where the context has it again,
    that is its place too unless another memory has it. Less sure places count where a text has too few others.
    """
    numbers = defaultdict[str, list[int]](list)
    for number, text in enumerate(texts):
        numbers["\n".join(_lines(text))].append(number)
    longest = sorted(filter(None, numbers), key=len, reverse=True)
    spans = {text: _spans(context, text, last) for text in longest}
    places = _Places(context)
    own: dict[str, list[_Span]] = {}
    for text in longest:
        own[text] = _surest(places.free(spans[text]), len(numbers[text]))
        for number, span in zip(numbers[text], own[text], strict=False):
            places.take(number, span)
    has_own = _memories(places.taken)
    repeated: list[_Place] = []
    for text in longest:
        *_, worst = numbers[text]
        for span in places.free(own[text]):
            places.take(worst, span)
        if has_own.isdisjoint(numbers[text]):
            repeated += [_Place(worst, start, end, own=False, kind=kind) for kind, start, end in spans[text][:1]]
    return places.taken + repeated


class _Places:
    """Places that texts of memories have taken in a context."""

    def __init__(self, context: str) -> None:
        self.taken: list[_Place] = []
        self._is_taken = bytearray(len(context))

    def take(self, memory: int, span: _Span) -> None:
        kind, start, end = span
        self.taken.append(_Place(memory, start, end, own=True, kind=kind))
        self._is_taken[start:end] = b"\1" * (end - start)

    def free(self, spans: Iterable[_Span]) -> list[_Span]:
        return [span for span in spans if self._is_taken.find(1, span[1], span[2]) < 0]


def _surest(spans: Sequence[_Span], count: int) -> list[_Span]:
    """Return the spans of the surest kind, and those of the others while they are fewer than a number."""
    found: list[_Span] = []
    for kind in _Kind:
        if len(found) < count:
            found += [span for span in spans if span[0] is kind]
    return found


def _spans(context: str, text: str, last: _Kind) -> list[_Span]:
    """Return where a text is in a context: kind, first character, after the last one; the surest and shortest first."""
    found: list[_Span] = []
    pattern, at = _pattern(text), 0
    while match := pattern.search(context, at):
        start, end = match.span()
        kind = _kind(context, start, end, text, last)
        at = start + 1 if kind is None else end
        if kind is not None:
            separator = None if kind is _Kind.ITEM else _SEPARATOR.match(context, end)
            found.append((kind, start, separator.end() if separator else end))
    return sorted(found, key=lambda span: (span[0], span[2] - span[1]))


def _kind(context: str, start: int, end: int, text: str, last: _Kind) -> _Kind | None:
    """Return what surrounds a text; ``None`` where it is a part of something else."""
    near = start
    while near and context[near - 1].isspace():
        near -= 1
    near = max(0, near - _LONGEST_MARK)
    if _BEFORE.search(context, near, start) and (
        _AFTER.match(context, end) or (" " in text and _LABEL.match(context, end))
    ):
        return _Kind.ITEM
    if _BEFORE_PART.search(context, near, start) and _AFTER_PART.match(context, end):
        return _Kind.PART
    if last is _Kind.WORDS and not (_splits_word(context, start) or _splits_word(context, end)):
        return _Kind.WORDS
    return None


def _splits_word(context: str, at: int) -> bool:
    """Return whether a word continues from before some character of a context."""
    pair = context[at - 1 : at + 1] if at else ""
    return (
        len(pair) == 2
        and all(c.isalnum() or c in "_'’" or unicodedata.category(c)[0] == "M" for c in pair)
        and not has_joined_words(pair)
    )


@lru_cache(maxsize=1 << 12)  # a memory is found by many questions
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(_BETWEEN.join(r"\s+".join(map(re.escape, line.split())) for line in text.split("\n")))


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def _cut(text: str, budget: int, *, from_start: bool = False) -> str:
    """Cut a text at its end, or at its start, until it has at most this many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimated_tokens(text[len(text) - middle :] if from_start else text[:middle]) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[len(text) - low :] if from_start else text[:low]
