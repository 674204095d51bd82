"""Slack's export: a folder or zip archive of ``CHANNEL/YYYY-MM-DD.json`` next to ``users.json``."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eval.loaders.exports.chats import Chat, Export, Message, Options, by_day, seconds_in_utc
from eval.loaders.exports.json_chats import first_of, plain
from eval.loaders.exports.sources import ExportFile, files_of_export
from eval.loaders.jsonfile import JsonNode, json_values
from memsys.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_FILES = r"(^|/)(users|dms|mpims|[^/]+/\d{4}-\d{2}-\d{2})\.json$"
#: Subtypes of messages written by a person; others are joins, topics, pins and the like.
_WRITTEN = ("", "me_message", "thread_broadcast", "file_share", "file_comment")
#: ``<@U1>``, ``<#C1|general>``, ``<!here>``, ``<https://x|label>``.
_REFERENCE = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


def read(source: Path, options: Options) -> Export:
    """Read channels and direct messages, each a chat with a session a day; replies follow what they reply to.

    Raises:
        DataError: there is no file of a day in it.
    """
    files = files_of_export(source, _FILES)
    lists, days = _sorted_out(files)
    if not days:
        raise DataError(
            f"{source}: holds no file CHANNEL/YYYY-MM-DD.json; name the folder or zip archive of the export"
        )
    people = {name: _shown_name(user) for user in lists.get("users.json", ()) if (name := plain(user, "id"))}
    titles = _titles([*lists.get("dms.json", ()), *lists.get("mpims.json", ())], people)
    left_out: Counter[str] = Counter()
    chats = [
        _chat(titles.get(channel, channel), messages, people, left_out) for channel, messages in sorted(days.items())
    ]
    return Export(chats, left_out=left_out)


def _sorted_out(files: Sequence[ExportFile]) -> tuple[dict[str, list[JsonNode]], dict[str, list[JsonNode]]]:
    """Return the lists of users and direct messages by file, and the messages by channel."""
    lists: dict[str, list[JsonNode]] = {}
    days: dict[str, list[JsonNode]] = {}
    for file in files:
        is_day = bool(_DAY.fullmatch(file.path.name))
        group, key = (days, file.path.parent.name) if is_day else (lists, file.path.name)
        group.setdefault(key, []).extend(json_values(file.path, file.content))
    return lists, days


def _shown_name(user: JsonNode) -> str:
    profile = user.find("profile")
    inside = profile if profile and isinstance(profile.value, dict) else user
    names = (plain(inside, "display_name"), plain(inside, "real_name"), plain(user, "real_name"), plain(user, "name"))
    return first_of((*names, plain(user, "id")))


def _titles(groups: Iterable[JsonNode], people: Mapping[str, str]) -> dict[str, str]:
    """Return what direct messages are called, by the folder: the names of those who write."""
    titles = {}
    for group in groups:
        members = group.find("members")
        names = [people.get(name, name) for name in members.texts()] if members else []
        titles.update({folder: ", ".join(names) for key in ("id", "name") if names and (folder := plain(group, key))})
    return titles


def _chat(name: str, messages: Iterable[JsonNode], people: Mapping[str, str], left_out: Counter[str]) -> Chat:
    """Return a channel as a chat; a thread belongs to the day on which it began."""
    written = sorted(_written(messages, left_out), key=lambda message: (_began(message), _time(message)))
    said = [(seconds_in_utc(_began(message))[:10], _said(message, people)) for message in written]
    days = iter([day for day, _ in said])
    return Chat(name, by_day([message for _, message in said], lambda message: next(days)), titled=True)


def _written(messages: Iterable[JsonNode], left_out: Counter[str]) -> Iterator[JsonNode]:
    """Yield what people wrote, once: a reply that was sent to the channel too may be there twice."""
    seen: set[tuple[str, str]] = set()
    for message in messages:
        key = (plain(message, "ts"), plain(message, "user"))
        subtype = plain(message, "subtype")
        if subtype == "bot_message" or plain(message, "bot_id") or key[1] == "USLACKBOT":
            left_out["messages of bots"] += 1
        elif subtype not in _WRITTEN:
            left_out["joins and other notices"] += 1
        elif key not in seen:
            seen.add(key)
            yield message


def _time(message: JsonNode) -> float:
    return _seconds(message, "ts")


def _began(message: JsonNode) -> float:
    return _seconds(message, "thread_ts") or _time(message)


def _seconds(message: JsonNode, key: str) -> float:
    text = plain(message, key)
    return float(text) if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text) else 0.0


def _said(message: JsonNode, people: Mapping[str, str]) -> Message:
    profile = message.find("user_profile")
    own = _shown_name(profile) if profile and isinstance(profile.value, dict) else ""
    user = plain(message, "user")
    speaker = first_of((people.get(user, ""), own, plain(message, "username"), user))
    return Message(speaker, without_references(plain(message, "text"), people), seconds_in_utc(_time(message)))


def without_references(text: str, people: Mapping[str, str]) -> str:
    """Return a text with the names of people, channels and links in place of Slack's references."""
    return html.unescape(_REFERENCE.sub(lambda found: _named(found, people), text))


def _named(found: re.Match[str], people: Mapping[str, str]) -> str:
    kind, target, label = found[1], found[2], (found[3] or "")
    if kind == "@":
        return "@" + (people.get(target) or label or target)
    if kind == "#":
        return "#" + (label or target)
    if kind == "!":
        return label or f"@{target}"
    address = target.removeprefix("mailto:")
    return address if label in ("", address) else f"{label} ({address})"
