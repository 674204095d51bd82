"""WhatsApp's chat text, as Android and iOS write it, alone or in its zip archive."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from eval.loaders.exports.chats import Chat, DateOrder, Export, Message, Options, by_day
from eval.loaders.exports.sources import files_of_export
from memsys.errors import DataError

_MARKS = "[\u200e\u200f]*"
_DATE = (
    rf"(?P<first>\d{{1,4}}){_MARKS}(?P<sign>[./-]){_MARKS}\s?(?P<second>\d{{1,2}}){_MARKS}(?P=sign){_MARKS}\s?"
    r"(?P<third>\d{1,4})\.?"
)
_CLOCK = (
    r"(?:(?P<before>[上下]午|午[前後]|오[전후])\s?)?(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.]\d{2})?"
    r"(?:\s?(?P<half>[AaPp]\.?\s?[Mm]\.?|[صم]))?"
)
#: The second half of the day, in the languages of :data:`_CLOCK`.
_AFTERNOON = ("p", "下午", "午後", "오후", "م")
#: ``[31.12.24, 18:05:09] Name: text`` of iOS and ``31/12/2024, 6:05 pm - Name: text`` of Android.
_HEADS = (
    re.compile(rf"{_MARKS}\[{_DATE}[,\u060c]?\s{_CLOCK}\]\s?(?P<rest>.*)", re.DOTALL),
    re.compile(rf"{_MARKS}{_DATE}[,\u060c]?\s{_CLOCK}\s[-\u2013]\s(?P<rest>.*)", re.DOTALL),
)
#: Signs of direction and joining that are no part of a text.
_INVISIBLE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
#: iOS marks automatic text in place of a message with this sign: notices, and names of media.
_NOTICE = "\u200e"
#: What Android writes for media, in whatever language.
_OMITTED = re.compile(r"<[^<>\n]{3,40}>|null")
#: The first line of Android's media, with the caption below.
_FILE = re.compile(
    r"(?:(?:IMG|VID|PTT|AUD|STK|DOC)-\d{8}-WA\d+\.\w{2,5} \([^()\n]+\)|"
    r"[^\n]+\.\w{2,5} \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado)\))(?:\n|$)"
)
#: What iOS adds to a text: the file that it is the caption of, or that it was edited, as Android does too.
_ADDED = re.compile("\\s?\u200e<[^<>\\n]{3,80}>|\\s?<This message was edited>$")
_DELETED = ("This message was deleted", "You deleted this message")
_LAST_DAY = 31
#: A name that is longer or has a quotation mark is a notice with a colon in it.
_LONGEST_NAME = 60
_CHAT_OF = re.compile(r"^_?WhatsApp[ _-]*Chat[ _-]*(?:with|mit|avec|con|-)?[ _-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A message or notice as it is in the file: the numbers of its date and the sign between them, time, text."""

    date: tuple[int, int, int]
    sign: str
    hour: int
    minute: int
    rest: str


def read(source: Path, options: Options) -> Export:
    """Read chats, each with a session a day.

    Raises:
        DataError: no line begins as a message does, or the order of day and month cannot be told.
    """
    left_out: Counter[str] = Counter()
    chats = []
    for file in files_of_export(source, r"\.txt$"):
        entries = list(_entries(_text(file.path, file.content)))
        if not entries:
            raise DataError(
                f"{file.path}: no line begins as WhatsApp's do, `31/12/2024, 18:05 - Name: text` or "
                "`[31.12.24, 18:05:09] Name: text`"
            )
        order = options.date_order or date_order([entry.date for entry in entries], entries[0].sign, file.path)
        messages = [said for entry in entries if (said := _said(entry, order, file.path, left_out))]
        chats.append(Chat(_name(source, file.path), by_day(messages, lambda message: message.date[:10]), titled=True))
    return Export(chats, left_out=left_out)


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}; save the file as UTF-8") from error


def _name(source: Path, path: Path) -> str:
    """Return the other speaker's name, from the file, or from the archive where the file is ``_chat.txt``."""
    stem = path.stem if _CHAT_OF.match(path.stem) or path == source else source.stem
    return _CHAT_OF.sub("", stem).strip() or stem


def _entries(text: str) -> Iterator[_Entry]:
    """Yield messages and notices; lines without a date belong to what is above them."""
    begun: list[str] = []
    for line in text.split("\n"):
        if _head(line):
            yield from _entry(begun)
            begun = [line]
        elif begun:
            begun.append(line)
    yield from _entry(begun)


def _head(text: str) -> re.Match[str] | None:
    return next((found for head in _HEADS if (found := head.match(text))), None)


def _entry(lines: Sequence[str]) -> Iterator[_Entry]:
    found = _head("\n".join(lines).rstrip())
    if found:
        first, second, third, hour, minute = map(int, found.group("first", "second", "third", "hour", "minute"))
        half = (found["before"] or found["half"] or "").lower()
        hour = hour % 12 + 12 * half.startswith(_AFTERNOON) if half else hour
        yield _Entry((first, second, third), found["sign"], hour, minute, found["rest"])


def date_order(dates: Sequence[tuple[int, int, int]], sign: str, path: Path) -> DateOrder:
    """Tell the order of day, month and year from all dates of a file, which goes forward in time.

    Where both orders fit, numbers with dots between them have the day first.

    Raises:
        DataError: both orders fit, or none.
    """
    if all(first > _LAST_DAY for first, _, _ in dates):
        return "ymd"
    exist = [order for order in _TWO_ORDERS if _all_exist(dates, order)]
    fits = [order for order in exist if _goes_forward(dates, order)] or exist
    if len(fits) == 2 and sign == ".":
        return "dmy"
    if len(fits) != 1:
        found = f"{dates[0][0]}{sign}{dates[0][1]}{sign}{dates[0][2]}"
        raise DataError(
            f"{path}: its dates do not show whether the day or the month comes first (the first is {found}); "
            "say it with --date-order dmy or --date-order mdy"
        )
    return fits[0]


_TWO_ORDERS: tuple[DateOrder, ...] = ("dmy", "mdy")


def _all_exist(dates: Sequence[tuple[int, int, int]], order: DateOrder) -> bool:
    return all(_moment(date, order) is not None for date in dates)


def _goes_forward(dates: Sequence[tuple[int, int, int]], order: DateOrder) -> bool:
    moments = [moment for date in dates if (moment := _moment(date, order))]
    return all(one <= other for one, other in pairwise(moments))


def _moment(date: tuple[int, int, int], order: DateOrder, hour: int = 0, minute: int = 0) -> datetime | None:
    """Return a moment, ``None`` if no calendar has it; its zone is the telephone's, which the file does not say."""
    day, month, year = (date[order.index(part)] for part in "dmy")
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None


def _said(entry: _Entry, order: DateOrder, path: Path, left_out: Counter[str]) -> Message | None:
    """Return a message's text, or nothing, with the reason counted."""
    moment = _moment(entry.date, order, entry.hour, entry.minute)
    if moment is None:
        raise DataError(f"{path}: no calendar has the date {entry.date} in the order {order}; correct --date-order")
    name, colon, text = entry.rest.partition(":")
    speaker = _INVISIBLE.sub("", name).replace("\u202f", " ").replace("\xa0", " ").removeprefix("~").strip()
    if not colon or not speaker or len(speaker) > _LONGEST_NAME or set(speaker) & {*'"\u201c\u201d'}:
        left_out["notices of the program"] += 1
        return None
    text = text.strip(" \t")
    written = _INVISIBLE.sub("", _ADDED.sub("", _FILE.sub("", text))).strip()
    reason = _why_no_text(text, written)
    if reason:
        left_out[reason] += 1
        return None
    return Message(speaker, written, moment.strftime("%Y-%m-%d %H:%M"))


def _why_no_text(text: str, written: str) -> str:
    if text.startswith(_NOTICE):
        return "media, and notices in place of a message"
    if _OMITTED.fullmatch(text) or (text and not written):
        return "media"
    return "deleted messages" if written.rstrip(".") in _DELETED else ""
