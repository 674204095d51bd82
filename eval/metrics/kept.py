"""Kept information: what of the gold answer is still in the memories that claim its turns.

Lineage says that a memory came from a turn, not that its text still holds what the turn said. For systems that rewrite,
these two say it without a judge: by words and by dates. Both are ours; a paraphrase counts as lost.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from memsys.dates import MONTHS
from memsys.index.words import words

#: Share of the answer's content words that the gold turns hold and the memories made from them still hold.
KEPT_WORDS = "kept_words"
#: Share of the answer's days, months and years that are in the memories made from the gold turns, copied or computed.
KEPT_DATES = "kept_dates"

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(3[01]|[12]\d|0?[1-9])(?!\d)(?:st|nd|rd|th)?"
_DATES = tuple(
    (re.compile(pattern, re.IGNORECASE), fields)
    for pattern, fields in (
        (r"(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)", ("year", "month", "day")),
        (r"(?<!\d)(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日号號일])?", ("year", "month", "day")),
        (rf"\b{_DAY}\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+(\d{{4}}))?", ("day", "month", "year")),
        (rf"\b({_MONTH})\.?\s+{_DAY}\b(?![:\d])(?:,?\s+(\d{{4}}))?", ("month", "day", "year")),
        (rf"\b({_MONTH})\b\.?,?\s+(\d{{4}})\b", ("month", "year")),
        (r"(?<!\d)((?:19|20)\d{2})(?!\d)", ("year",)),
    )
)
_DIGIT = re.compile(r"\d")
#: Months that are no other word.
_ALONE = re.compile(r"\b(January|February|April|June|July|August|September|October|November|December)\b", re.IGNORECASE)


@lru_cache(maxsize=1 << 16)  # a memory is claimed by many questions
def date_parts(text: str) -> frozenset[tuple[str, int]]:
    """Return the days, months and years of the dates in a text: ``("day", 7)``, ``("month", 5)``, ``("year", 2023)``.

    A number is a day only next to a month; May and March count as months only next to a day or a year.
    """
    found = {("month", MONTHS[match[1].lower()]) for match in _ALONE.finditer(text)}
    for pattern, fields in _DATES if _DIGIT.search(text) else ():  # each of them has a digit
        for match in pattern.finditer(text):
            found |= {
                (field, MONTHS.get(value.lower()) or int(value))
                for field, value in zip(fields, match.groups(), strict=True)
                if value
            }
    return frozenset(found)


@lru_cache(maxsize=1 << 16)
def content_words(text: str) -> frozenset[str]:
    """Return the distinct words of a text in any script, without function words."""
    return frozenset(words(text))


def kept_scores(
    answers: Sequence[str], gold_texts: Iterable[str], memories: Sequence[str] | None
) -> dict[str, float | None]:
    """Return the shares of an answer that its memories keep; of several answers the best.

    Args:
        answers: alternatives of the gold answer; empty if there is none.
        gold_texts: texts of the gold turns.
        memories: texts of the entries that came from any of them; ``None`` where they are not known.

    Returns:
        ``None`` where the entries are not known, where no content word of the answer is in the gold turns, and of dates
        where the answer has none.
    """
    if memories is None:
        return {KEPT_WORDS: None, KEPT_DATES: None}
    said = frozenset[str]().union(*map(content_words, gold_texts))
    held = frozenset[str]().union(*map(content_words, memories))
    dates = frozenset[tuple[str, int]]().union(*map(date_parts, memories))
    return {
        KEPT_WORDS: max((share for one in answers if (share := _share(content_words(one) & said, held)) is not None),
                        default=None),
        KEPT_DATES: max((share for one in answers if (share := _share(date_parts(one), dates)) is not None),
                        default=None),
    }  # fmt: skip


def _share(wanted: frozenset[object], held: frozenset[object]) -> float | None:
    return len(wanted & held) / len(wanted) if wanted else None
