"""JSON files whose errors say where: every value knows its file and its path inside it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from memsys.errors import DataError
from memsys.vocabulary import Json

_TYPE_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def type_name(value: Json) -> str:
    """Name the JSON type of a value."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value with its place. Every accessor checks the type and raises :class:`DataError` naming the place."""

    value: Json
    path: str
    file: str

    def error(self, problem: str) -> DataError:
        """Make the error for this place."""
        return DataError(f"{self.file}: {self.path or 'top level'}: {problem}")

    def _expect(self, kind: type, name: str) -> Json:
        if not isinstance(self.value, kind) or (isinstance(self.value, bool) and kind is not bool):
            raise self.error(f"expected {name}, found {type_name(self.value)}")
        return self.value

    def text(self) -> str:
        """Return the string."""
        return str(self._expect(str, "string"))

    def integer(self) -> int:
        """Return the whole number."""
        return int(self._expect(int, "whole number"))

    def text_or_number(self) -> str:
        """Return the string, or the number as a string (answers that are years or counts)."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise self.error(f"expected string or number, found {type_name(self.value)}")
        return str(self.value)

    def elements(self) -> list["Node"]:
        """Return the array's elements."""
        array = self._expect(list, "array")
        return [Node(element, f"{self.path}[{index}]", self.file) for index, element in enumerate(array)]

    def texts(self) -> list[str]:
        """Return the array's elements, all of them strings."""
        return [element.text() for element in self.elements()]

    def members(self) -> dict[str, "Node"]:
        """Return the object's members in the order of the file."""
        members = self._expect(dict, "object")
        return {key: Node(value, self._below(key), self.file) for key, value in members.items()}

    def find(self, key: str) -> "Node | None":
        """Return the member ``key``, or ``None`` where the object does not have it."""
        members = self._expect(dict, "object")
        return Node(members[key], self._below(key), self.file) if key in members else None

    def get(self, key: str) -> "Node":
        """Return the member ``key``, which must be there."""
        node = self.find(key)
        if node is None:
            raise Node(None, self._below(key), self.file).error("missing field")
        return node

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def read_json(path: Path) -> tuple[Node, str]:
    """Read a JSON file.

    Returns:
        The top-level value and the file's sha256 in hexadecimal.

    Raises:
        DataError: the file cannot be read, is no UTF-8 or no JSON (a download that was cut off, most often), or an
            object in it has the same key twice, of which JSON readers silently keep one.
    """
    repeated: list[tuple[str, dict[str, Json]]] = []

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) < len(pairs):
            keys = [key for key, _ in pairs]
            repeated.append((next(key for key in keys if keys.count(key) > 1), members))
        return members

    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check dataset.path, dataset.data_dir") from error
    try:
        value = json.loads(content, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}; fetch the file again") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DataError(
            f"{path}: no valid JSON at {place} ({error.msg}, {len(content)} bytes read); "
            "the file may be cut off: fetch it again"
        ) from error
    top = Node(value, "", path.name)
    if repeated:
        key, owner = repeated[0]
        raise _holder(top, owner).error(f"duplicate key {key!r}; remove one of the two")
    return top, hashlib.sha256(content).hexdigest()


def _holder(node: Node, wanted: dict[str, Json]) -> Node:
    """Find the node of an object; the node itself where the object is not below it."""
    below = node.elements() if isinstance(node.value, list) else []
    if isinstance(node.value, dict):
        if node.value is wanted:
            return node
        below = list(node.members().values())
    found = (_holder(child, wanted) for child in below if isinstance(child.value, list | dict))
    return next((child for child in found if child.value is wanted), node)
