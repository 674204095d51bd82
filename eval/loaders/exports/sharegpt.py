"""ShareGPT: objects with ``conversations`` or ``items``, of ``from`` and ``value`` or ``role`` and ``content``."""

from collections import Counter
from pathlib import Path

from eval.loaders.exports import openai
from eval.loaders.exports.chats import Chat, Export, Message, Options, Session, role
from eval.loaders.exports.json_chats import chat_nodes, found, has, name_of
from eval.loaders.jsonfile import JsonNode

#: Fields that hold the turns of a chat; the first one that is there counts.
_LISTS = ("conversations", "items")
#: Speaker of tool calls, which are not messages.
_CALL = "function_call"


def read(source: Path, options: Options) -> Export:
    """Read chats; calls of tools are left out, and what a tool replied is said by ``tool``."""
    left_out: Counter[str] = Counter()
    chats = []
    for number, node in enumerate(chat_nodes(source, r"\.jsonl?$"), 1):
        said = [_message(item) for item in _list(node).elements()]
        messages = [message for message in said if message.speaker != _CALL]
        left_out["calls of tools"] += len(said) - len(messages)
        chats.append(Chat(name_of(node, number, "id"), [Session("", messages)]))
    return Export(chats, left_out=left_out)


def _list(node: JsonNode) -> JsonNode:
    for name in _LISTS:
        if has(node, name):
            return node.get(name)
    raise node.error(f"expected object with {' or '.join(_LISTS)}, found {found(node)}")


def _message(item: JsonNode) -> Message:
    if has(item, "from", "value"):
        return Message(role(item.get("from").text()), item.get("value").text())
    if has(item, "role", "content"):
        return openai.message(item)
    raise item.error(f"expected object with from and value, or with role and content, found {found(item)}")
