"""ChatGPT's export: ``conversations.json``, alone, in its folder or in the zip archive, of each chat one branch."""

import json
import re
from collections import Counter
from pathlib import Path

from eval.loaders.exports.chats import Chat, Export, Message, Options, Session, seconds_in_utc
from eval.loaders.exports.json_chats import branch_to, chat_nodes, has, name_of, parts_text, plain
from eval.loaders.jsonfile import JsonNode

#: In the archive of an export; a large one is cut into ``conversations-000.json``, ...
FILES = r"(^|/)conversations(-\d+)?\.json$"
_SPEAKERS = ("user", "assistant")
_TO_EVERYBODY = "all"
#: Marks of what the page does not show, and of instructions that apply to every chat.
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
#: A mark of the page's own, as ``cite``, and what belongs to it, between characters of private use.
_MARK = re.compile("([ \t]*)\ue200(\\w+)(?:\ue202([^\ue200\ue201]*))?\ue201")
#: Characters that mark a span of text, and the marks of older exports, such as 【4:0†source】.
_REST = re.compile("[\ue200-\ue206]|[ \t]*【[^【】]{0,200}†[^【】]{0,200}】")
#: Marks that show a text of their own on the page; others show a number or a picture.
_LINKS = ("url", "link_title")


def read(source: Path, options: Options) -> Export:
    """Read chats: what user and assistant said to each other on the branch that was shown last."""
    left_out: Counter[str] = Counter()
    chats = []
    for number, node in enumerate(chat_nodes(source, FILES), 1):
        mapping = node.get("mapping").members()
        name = name_of(node, number, "id", "conversation_id")
        messages = [said for message in _branch(node, mapping, left_out) if (said := _said(message, left_out))]
        chats.append(Chat(name, [Session(plain(node, "title"), messages)]))
    return Export(chats, left_out=left_out)


def _branch(node: JsonNode, mapping: dict[str, JsonNode], left_out: Counter[str]) -> list[JsonNode]:
    """Return the messages of the branch that ends in ``current_node``, else in the last node."""
    parents = {name: plain(one, "parent") or None for name, one in mapping.items()}
    branch = branch_to(plain(node, "current_node") or next(reversed(mapping), None), parents)
    left_out["messages of other branches"] += sum(
        _is_message(one) for name, one in mapping.items() if name not in set(branch)
    )
    return [mapping[name].get("message") for name in branch if _is_message(mapping[name])]


def _is_message(node: JsonNode) -> bool:
    message = node.find("message")
    return bool(message and message.value)


def _said(message: JsonNode, left_out: Counter[str]) -> Message | None:
    """Return a message's text, or nothing, with the reason counted."""
    speaker = message.get("author").get("role").text()
    content = message.get("content")
    reason = _why_unseen(message, speaker)
    parts = content.get("parts") if has(content, "parts") else None
    if not reason and parts is None:
        kind = plain(content, "content_type") if has(content) else ""
        reason = f"messages of thoughts, code and tools ({kind or 'other'})"
    if reason or parts is None:
        left_out[reason] += 1
        return None
    seconds = message.find("create_time")
    return Message(speaker, without_marks(parts_text(parts)), seconds_in_utc(seconds.value) if seconds else "")


def _why_unseen(message: JsonNode, speaker: str) -> str:
    metadata = message.find("metadata")
    if metadata and any(has(metadata, mark) and metadata.get(mark).value is True for mark in _HIDDEN):
        return "hidden messages"
    if (plain(message, "recipient") or _TO_EVERYBODY) != _TO_EVERYBODY:
        return "calls of tools"
    return "" if speaker in _SPEAKERS else f"messages of {speaker}"


def without_marks(text: str) -> str:
    """Return a text without the marks of citations, pictures and spans; names and links keep what they show."""
    return _REST.sub("", _MARK.sub(_shown, text))


def _shown(mark: re.Match[str]) -> str:
    space, kind, rest = mark[1], mark[2], (mark[3] or "")
    if kind in _LINKS:
        return space + rest.split("\ue202")[0]
    if kind != "entity":
        return ""
    try:
        return space + str(json.loads(rest)[1])  # ["city", "Paris", "France"]
    except (ValueError, LookupError, TypeError):
        return ""
