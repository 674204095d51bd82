"""Common parts of JSON export formats: their chats, and the text of a message in one or several parts."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from eval.loaders.exports.sources import files_of_export
from eval.loaders.jsonfile import JsonNode, json_values, type_name

#: Fields of an object that a message names.
_NAMED_FIELDS = 5


def chat_nodes(source: Path, names: str) -> list[JsonNode]:
    """Return the values of the JSON arrays, or JSON Lines, of an export; a single object counts as an array of one."""
    return [node for file in files_of_export(source, names) for node in json_values(file.path, file.content)]


def found(node: JsonNode) -> str:
    """Say what is in a place, for a message: the type, of an object its first fields."""
    if not isinstance(node.value, dict) or not node.value:
        return type_name(node.value)
    names = list(node.value)
    more = f" and {len(names) - _NAMED_FIELDS} more" if len(names) > _NAMED_FIELDS else ""
    return f"object with {', '.join(names[:_NAMED_FIELDS])}{more}"


def has(node: JsonNode, *names: str) -> bool:
    """Return whether a value is an object with some members."""
    return isinstance(node.value, dict) and all(name in node.value for name in names)


def parts_text(content: JsonNode) -> str:
    """Return the text of a message: a string, or the texts among its parts."""
    if not isinstance(content.value, list):
        return content.text() if content.value is not None else ""
    texts = (part.value if isinstance(part.value, str) else _part_text(part) for part in content.elements())
    return "\n".join(text for text in texts if text)


def _part_text(part: JsonNode) -> str:
    text = part.find("text") if isinstance(part.value, dict) else None
    return text.text() if text and isinstance(text.value, str) else ""


def name_of(node: JsonNode, number: int, *keys: str) -> str:
    """Return the name of a chat: the first of some members that is not blank, else its place in the file."""
    named = (node.find(key) for key in keys if has(node, key))
    names = (one.text_or_number() for one in named if one and one.value is not None)
    return next((name for name in names if name.strip()), str(number))


def plain(node: JsonNode, key: str) -> str:
    """Return a member that is a text, and an empty one for anything else."""
    member = node.find(key)
    return member.value.strip() if member and isinstance(member.value, str) else ""


def branch_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the messages from the first one to a leaf, by the parent of each."""
    branch: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in branch:
        branch[leaf] = None
        leaf = parents[leaf]
    return list(branch)[::-1]


def first_of(values: Iterable[str]) -> str:
    """Return the first text that is not empty."""
    return next(filter(None, values), "")
