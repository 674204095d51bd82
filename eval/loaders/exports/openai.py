"""OpenAI's messages: objects with ``messages`` of ``role`` and ``content``, arrays of messages, or one array."""

from pathlib import Path

from eval.loaders.exports.chats import Chat, Export, Message, Options, Session, role
from eval.loaders.exports.json_chats import chat_nodes, found, has, name_of, parts_text
from eval.loaders.jsonfile import JsonNode
from memsys.errors import DataError


def read(source: Path, options: Options) -> Export:
    """Read chats.

    Raises:
        DataError: a chat is none, or no message of the file has a text, as under a misspelt field.
    """
    nodes = chat_nodes(source, r"\.jsonl?$")
    if nodes and has(nodes[0], "role") and not has(nodes[0], "messages"):
        chats = [("1", nodes)]
    else:
        chats = [(name_of(node, number, "id"), _messages(node).elements()) for number, node in enumerate(nodes, 1)]
    said = [(name, [message(item) for item in items]) for name, items in chats]
    items = [item for _, own in chats for item in own]
    if items and not any(one.text.strip() for _, messages in said for one in messages):
        raise _without_text(items[0])
    return Export([Chat(name, [Session("", messages)]) for name, messages in said])


def message(node: JsonNode) -> Message:
    """Read one message."""
    content = node.find("content")
    return Message(role(node.get("role").text()), parts_text(content) if content else "")


def _messages(node: JsonNode) -> JsonNode:
    """Return the array of messages of a chat: the chat itself, or its ``messages``."""
    if isinstance(node.value, list):
        return node
    if has(node, "messages"):
        return node.get("messages")
    raise node.error(f"expected object with messages, or array of messages, found {found(node)}")


def _without_text(node: JsonNode) -> DataError:
    content = node.find("content")
    if content is None:
        return node.error(f"expected object with role and content, found {found(node)}")
    return content.error(f"expected text, found {found(content)}; no message of the file has text")
