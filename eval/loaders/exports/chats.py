"""Common parts of chat export formats: chats of sessions of messages, and what was left out of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Literal

from memsys.vocabulary import Json, Sample

#: Names of roles -> those of all chats; others stay as they are.
ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "observation": "tool",
    "function": "tool",
    "function_response": "tool",
}
#: Reason of which each format has some.
WITHOUT_TEXT = "messages without text"
#: First moment that is not a date of a message, in Unix seconds.
_END_OF_TIME = 1e11

DateOrder = Literal["dmy", "mdy", "ymd"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a speaker; the date is empty where it is unknown."""

    speaker: str
    text: str
    date: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """Messages that belong together, in order; the title may be empty."""

    title: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation by its name in the export.

    Attributes:
        titled: the name says what it is, as that of a channel or a person does; others are ids.
    """

    name: str
    sessions: Sequence[Session]
    titled: bool = False


@dataclass(frozen=True, slots=True)
class Export:
    """Content of a file.

    Attributes:
        chats: of a chat export.
        samples: of a data set, with its questions.
        left_out: reason, such as ``hidden messages`` -> how many.
    """

    chats: Sequence[Chat] = ()
    samples: Sequence[Sample] = ()
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Options:
    """Facts about an export that its file lacks.

    Attributes:
        date_order: order of day, month and year in its dates; ``None``: as the whole file shows.
        columns: field of a turn -> column of the table that holds it.
    """

    date_order: DateOrder | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


def role(name: str) -> str:
    """Return the speaker of a role."""
    return ROLES.get(name.lower(), name)


def in_utc(moment: datetime) -> str:
    """Write a moment as a date in UTC, by which messages are also sorted."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def seconds_in_utc(seconds: Json) -> str:
    """Write Unix seconds, a number or its text, as a date in UTC; empty if there are none."""
    try:
        moment = float(seconds) if isinstance(seconds, str | int | float) and not isinstance(seconds, bool) else -1.0
    except ValueError:
        return ""
    return in_utc(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment)) if 0 <= moment < _END_OF_TIME else ""


def iso_in_utc(text: Json) -> str:
    """Write an ISO 8601 moment as a date in UTC; one without offset is taken as UTC, any other text as it is."""
    if not isinstance(text, str):
        return ""
    try:
        moment = datetime.fromisoformat(text)
        return in_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return text


def by_day(messages: Iterable[Message], day: Callable[[Message], str]) -> list[Session]:
    """Cut messages, which are in order, into one session a day, named by the date."""
    return [Session(name, tuple(group)) for name, group in groupby(messages, key=day)]
