"""Dates as people write them ("May 12, 2022", "October 2021", "2012", "during an election"), made sortable."""

import calendar
import re

from memsys.dates import MONTHS

#: Year, month, day, hour, minute; what the text leaves open is the earliest possible.
Moment = tuple[int, int, int, int, int]

_MONTH = r"(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DASH = r"\s*(?:-|–|to|until)\s*"
#: Most telling first. Of a range the start counts, its year taken from the end where it has none of its own.
_PATTERNS = [
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        _YEAR + r"\s*年\s*(?P<month>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*[日号])?",
        _YEAR + r"[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2}))?",
        _MONTH + r"\s+" + _DAY + _DASH + r"(?:[a-z]+\.?\s+)?\d{1,2}(?:st|nd|rd|th)?,?\s+" + _YEAR,
        _MONTH + r"\s+" + _DAY + r",?\s+" + _YEAR,
        _DAY + r"\s+(?:of\s+)?" + _MONTH + r",?\s+" + _YEAR,
        r"\b" + _MONTH + _DASH + r"[a-z]+\.?,?\s+" + _YEAR,
        r"\b" + _MONTH + r",?\s+(?:of\s+)?" + _YEAR,
        _YEAR + r"[-/.](?P<month>\d{1,2})\b",
        r"\b" + _YEAR + r"\b",
    )
]


def parse_fuzzy(text: str) -> Moment | None:
    """Return the earliest moment that the text can mean, or ``None`` where it names no year."""
    found = [match for pattern in _PATTERNS if (match := pattern.search(text))]
    if not found:
        return None
    start = min(match.start() for match in found)
    return _moment(next(match for match in found if match.start() == start))


def _moment(match: re.Match[str]) -> Moment | None:
    parts = match.groupdict()
    year = int(parts["year"])
    named = parts.get("month") or "1"
    month = int(named) if named.isdigit() else MONTHS[named.lower()]
    day, hour, minute = (int(parts.get(name) or default) for name, default in (("day", 1), ("hour", 0), ("minute", 0)))
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year, month)[1] or hour > 23 or minute > 59:
        return None
    return year, month, day, hour, minute
