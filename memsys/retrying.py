"""When a request to a server over HTTP is sent again, for backbones and embedders alike."""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

#: Statuses of a server that is busy or has failed on the way; the same request may be taken the next time.
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
#: Seconds; no pause grows beyond.
LONGEST_PAUSE = 30.0
#: Seconds that a pause counts for at least, so that a server which always asks for less cannot hold a request for ever.
LEAST_PAUSE = 1.0

_LONGEST_VALUE = 40  # characters of a header that is read as a time
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|[smhd]))+", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)([a-zµ]+)", re.IGNORECASE)
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: Larger numbers are seconds since 1970, and those beyond the second bound milliseconds.
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e11
_RESET, _REMAINING = "x-ratelimit-reset", "x-ratelimit-remaining"
#: Google's detail of an error that says when to ask again, and the words of OpenAI, Groq and Google for it.
_RETRY_INFO = "google.rpc.RetryInfo"
_ASK_AGAIN = re.compile(rf"\b(?:try again|retry) in ({_DURATION.pattern})(?!\w)", re.IGNORECASE)


def pause_before(retry: int, backoff_s: float) -> float:
    """Return the seconds to wait before a retry, counted from 0; they double with each."""
    return min(backoff_s * 2.0**retry, LONGEST_PAUSE)


def asked_pause(headers: Mapping[str, str], payload: Any = None) -> float:
    """Return the seconds that a server asks to wait; 0 where it asks for none, or for a time that has passed.

    Read in this order: ``retry-after-ms``; ``Retry-After`` as seconds, also with decimals, or as a date (RFC 9110,
    10.2.3); ``x-ratelimit-reset-*`` of the limits of which nothing remains, as seconds, as ``1m30s`` or as a time;
    ``retryDelay`` of Google's ``RetryInfo`` in the body; ``Please try again in 6m0s`` in its message.

    Args:
        headers: of the reply.
        payload: JSON of its body.
    """
    return _in_headers(headers) or next(_in_body(payload), 0.0)


def _in_headers(headers: Mapping[str, str]) -> float:
    given = {name.lower(): value.strip() for name, value in headers.items() if len(value) <= _LONGEST_VALUE}
    now = time.time()
    milliseconds = _seconds(given.get("retry-after-ms", ""), now)
    if milliseconds is not None:
        return milliseconds / 1000
    asked = _seconds(given.get("retry-after", ""), now)
    return _until_reset(given, now) if asked is None else asked


def _in_body(payload: Any) -> Iterator[float]:
    """Yield the pauses that a body asks for; Gemini wraps it in a list."""
    body = payload[0] if isinstance(payload, list) and payload else payload
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return
    details = error.get("details")
    for one in details if isinstance(details, list) else ():
        if isinstance(one, Mapping) and str(one.get("@type")).endswith(_RETRY_INFO):
            yield seconds_in(str(one.get("retryDelay"))) or 0.0
    if said := _ASK_AGAIN.search(str(error.get("message"))):
        yield seconds_in(said[1]) or 0.0


def _until_reset(given: Mapping[str, str], now: float) -> float:
    """Return the seconds until exhausted limits reset; until the first reset where no limit says what remains."""
    resets = {name: _seconds(value, now) for name, value in given.items() if name.startswith(_RESET)}
    known = {name.removeprefix(_RESET): pause for name, pause in resets.items() if pause is not None}
    if not any(name.startswith(_REMAINING) for name in given):
        return min(known.values(), default=0.0)
    return max((pause for limit, pause in known.items() if given.get(f"{_REMAINING}{limit}") == "0"), default=0.0)


def seconds_in(value: str) -> float | None:
    """Read a time in a header, as seconds from now; ``None`` if it is not a time."""
    return _seconds(value.strip(), time.time()) if len(value) <= _LONGEST_VALUE else None


def _seconds(value: str, now: float) -> float | None:
    """Read a pause; ``None`` if it is not a pause."""
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number < _EPOCH_SECONDS:
            return number
        return max(0.0, (number / 1000 if number > _EPOCH_MILLISECONDS else number) - now)
    if _DURATION.fullmatch(value):
        return sum(float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in _PART.findall(value))
    moment = _moment(value)
    return None if moment is None else max(0.0, moment.timestamp() - now)


def _moment(value: str) -> datetime | None:
    """Read a date as HTTP writes it, or as ISO 8601; one without a zone is in UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
