"""Session dates as data sets write them, made comparable; a date without an offset is taken as UTC."""

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

#: Numbers of the months by their names and abbreviations in small letters.
MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_CLOCK = re.compile(
    r"(?P<before>[上下]午|午[前後]|오[전후])?\s*(?<!\d)(?P<hour>\d{1,2})[:：](?P<minute>\d{2})"
    r"(?:[:：](?P<second>\d{2})(?:\.\d+)?)?(?:\s*(?P<half>[ap]\.?m\b))?",
    re.IGNORECASE,
)
#: What may follow a time of day: an offset from UTC. A minus sign may also lead to the end of a span of time.
_ZONE = re.compile(
    r"\s?(?:(?:UTC|GMT)\s?)?(?P<sign>[+\-−])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?(?![\d:])", re.IGNORECASE
)
#: Hours of an offset at most.
_MOST_HOURS = 14
#: How the half of a day after noon begins.
_LATE = ("p", "下", "午後", "오후")
#: Words around a day and a time of day that add nothing to them.
_FILLERS = re.compile(rf"\b({'|'.join((*calendar.day_name, *calendar.day_abbr))}|on|at|T)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")
_DAYS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!\d)",
        r"\b(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>[a-z]{3,9})\.?,?\s+(?P<year>\d{4})\b",
        r"\b(?P<month>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})\b",
        r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\b",
        r"(?<!\d)(?P<year>\d{4})\s*[年년]\s*(?P<month>\d{1,2})\s*[月월]\s*(?P<day>\d{1,2})\s*[日号號일]",
    )
)


@lru_cache(maxsize=1 << 14)  # a session's date is read again for each of its memories
def parse_date(text: str) -> datetime | None:
    """Read a date, with the time of day where there is one.

    Knows ``2023-05-08T13:56:00``, ``2023/05/08 (Mon) 13:56``, ``1:56 pm on 8 May, 2023``, ``8 May 2023``,
    ``May 8, 2023``, ``2023年5月8日 下午1:56`` and, with dots, the day first: ``08.05.2023, 13:56:00``; any other text,
    and a date that no calendar has, gives ``None``. The moment has the offset that follows the time of day (``+02:00``,
    ``UTC+2``), so that moments of several offsets are in order.
    """
    for pattern in _DAYS:
        match = pattern.search(text)
        if match is not None:
            return _moment(match, text)
    return None


def _moment(match: re.Match[str], text: str) -> datetime | None:
    named = match["month"].lower()
    month = int(named) if named.isdigit() else MONTHS.get(named, 0)
    clock = _CLOCK.search(text)
    hour, minute, second = _time_of_day(clock) if clock is not None else (0, 0, 0)
    zone = _offset(clock, text) if clock is not None else UTC
    try:
        return datetime(int(match["year"]), month, int(match["day"]), hour, minute, second, tzinfo=zone)
    except ValueError:
        return None


def _offset(clock: re.Match[str], text: str) -> tzinfo:
    """Read what follows a time of day; UTC where that is not an offset, as in ``10:00-11:30``."""
    found = _ZONE.match(text, clock.end())
    if found is None:
        return UTC
    hours, minutes = int(found["hours"]), int(found["minutes"] or 0)
    is_stamp = clock["second"] or text[: clock.start("hour")].endswith("T") or re.search("[a-z]", found[0].lower())
    is_later = (hours, minutes) > (int(clock["hour"]), int(clock["minute"]))
    if (found["sign"] != "+" and is_later and not is_stamp) or hours > _MOST_HOURS or minutes >= 60:
        return UTC
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(offset if found["sign"] == "+" else -offset) if offset else UTC


def _time_of_day(clock: re.Match[str]) -> tuple[int, int, int]:
    hour = int(clock["hour"])
    half = (clock["half"] or clock["before"] or "").lower()
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.startswith(_LATE) else 0)
    return hour, int(clock["minute"]), int(clock["second"] or 0)


def iso(moment: datetime) -> str:
    """Write a moment as ``2023-05-08T13:56:00``, with an offset that is not 0."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (moment.isoformat()[-6:] if moment.utcoffset() else "")


def in_order(text: str) -> tuple[bool, datetime, str]:
    """Return what dates are sorted by: the moment; dates that cannot be read come last, as texts."""
    moment = parse_date(text)
    return moment is None, moment or datetime.min.replace(tzinfo=UTC), "" if moment else text


def normalised(text: str) -> str:
    """Return a date in ISO form where it can be read, else as the data set writes it."""
    moment = parse_date(text)
    return iso(moment) if moment is not None else text.strip()


def in_words(text: str) -> str:
    """Return a date as ``1:56 pm on 8 May, 2023`` where it can be read (midnight: the day alone), else as written.

    A text that says more than a day and a time of day is left as it is: ``8 May 2023, in the evening``.
    """
    moment = parse_date(text)
    if moment is None or _further_words(text):
        return text
    day = f"{moment.day} {calendar.month_name[moment.month]}, {moment.year}"
    if (moment.hour, moment.minute) == (0, 0):
        return day
    return f"{moment.hour % 12 or 12}:{moment.minute:02} {'am' if moment.hour < 12 else 'pm'} on {day}"


def _further_words(text: str) -> bool:
    """Return whether a date has letters or digits besides its day, time of day and weekday."""
    for pattern in (next(day for day in _DAYS if day.search(text)), _CLOCK):
        text = pattern.sub(" ", text, count=1)
    return _WORD.search(_FILLERS.sub(" ", text)) is not None
