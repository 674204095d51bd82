"""Claude's export: ``conversations.json``, alone, in its folder or in the zip archive."""

from collections import Counter
from pathlib import Path

from eval.loaders.exports.chatgpt import FILES
from eval.loaders.exports.chats import Chat, Export, Message, Options, Session, iso_in_utc, role
from eval.loaders.exports.json_chats import branch_to, chat_nodes, name_of, plain
from eval.loaders.jsonfile import JsonNode


def read(source: Path, options: Options) -> Export:
    """Read chats: the texts of each on the branch of its last message, without thoughts and tools."""
    left_out: Counter[str] = Counter()
    chats = []
    for number, node in enumerate(chat_nodes(source, FILES), 1):
        messages = [_said(message, left_out) for message in _branch(node, left_out)]
        chats.append(Chat(name_of(node, number, "uuid"), [Session(plain(node, "name"), messages)]))
    return Export(chats, left_out=left_out)


def _branch(node: JsonNode, left_out: Counter[str]) -> list[JsonNode]:
    """Return the messages that lead to the last one; all if none names its parent."""
    messages = node.get("chat_messages").elements()
    if not any(plain(message, "parent_message_uuid") for message in messages):
        return messages
    by_id = {plain(message, "uuid"): message for message in messages}
    parents = {name: plain(message, "parent_message_uuid") or None for name, message in by_id.items()}
    branch = branch_to(next(reversed(by_id), None), parents)
    left_out["messages of other branches"] += len(messages) - len(branch)
    return [by_id[name] for name in branch]


def _said(message: JsonNode, left_out: Counter[str]) -> Message:
    left_out["attached files"] += sum(
        len(files.value) for key in ("attachments", "files") if (files := message.find(key)) and files.value
    )
    sender = role(message.get("sender").text())
    return Message(sender, _text(message, left_out), iso_in_utc(plain(message, "created_at")))


def _text(message: JsonNode, left_out: Counter[str]) -> str:
    """Return the texts among a message's parts, else ``text``, which has placeholders for other parts."""
    content = message.find("content")
    parts = content.elements() if content and isinstance(content.value, list) else []
    if not parts:
        return plain(message, "text")
    texts = [plain(part, "text") for part in parts if plain(part, "type") == "text"]
    left_out["parts that are thoughts or tools"] += len(parts) - len(texts)
    return "\n".join(filter(None, texts))
