"""JSON files whose errors say where: every value knows its file and its path inside it."""

import ast
import codecs
import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memsys.counting import repeated
from memsys.errors import DataError
from memsys.vocabulary import Json

#: Characters of one number; longer ones are no counts, years or categories, and Python refuses to print the longest.
_LONGEST_NUMBER = 100
#: Characters of a place, and of a problem, in a message.
_LONGEST_MESSAGE = 300
#: Half of a surrogate pair as JSON can write it; in UTF-8 itself there are none.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

#: What to do about text that is not JSON: of JSON Lines, and of a whole file, which may be one's own or a download.
_ADVICE_LINE = "write one whole JSON object a line"
_ADVICE = "correct it there; a file that was fetched may be cut off: fetch it again"
#: What to do about bytes that are no UTF-8: of JSON Lines, which are one's own, and of a whole file.
_ADVICE_ENCODING_LINES = "save the file as UTF-8"
_ADVICE_ENCODING = "save the file as UTF-8; one that was fetched may be damaged: fetch it again"

_TYPE_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def type_name(value: Json) -> str:
    """Name the JSON type of a value."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value with its place. Every accessor checks the type and raises :class:`DataError` naming the place."""

    value: Json
    path: str
    file: str

    def error(self, problem: str) -> DataError:
        """Make the error for this place."""
        return DataError(f"{self.file}: {_short(self.path) or 'top level'}: {_short(problem)}")

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

    def elements(self) -> list["JsonNode"]:
        """Return the array's elements."""
        array = self._expect(list, "array")
        return [JsonNode(element, f"{self.path}[{index}]", self.file) for index, element in enumerate(array)]

    def texts(self) -> list[str]:
        """Return the array's elements, all of them strings."""
        return [element.text() for element in self.elements()]

    def members(self) -> dict[str, "JsonNode"]:
        """Return the object's members in the order of the file."""
        members = self._expect(dict, "object")
        return {key: JsonNode(value, self._below(key), self.file) for key, value in members.items()}

    def find(self, key: str) -> "JsonNode | None":
        """Return the member ``key``, or ``None`` where the object does not have it."""
        members = self._expect(dict, "object")
        return JsonNode(members[key], self._below(key), self.file) if key in members else None

    def get(self, key: str) -> "JsonNode":
        """Return the member ``key``, which must be there."""
        node = self.find(key)
        if node is None:
            raise JsonNode(None, self._below(key), self.file).error("missing field")
        return node

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}... ({len(text)} characters)"


def read_json(path: Path) -> tuple[JsonNode, str]:
    """Read a JSON file.

    Returns:
        The top-level value and the file's sha256 in hexadecimal.

    Raises:
        DataError: the file cannot be read, is not UTF-8 or no JSON (a download that was cut off, most often), an object
            in it has the same key twice, of which JSON readers silently keep one, or a value in it is none that can be
            written again: half of a surrogate pair, a number that is not a number or too long.
    """
    content = _content(path)
    return _tree(path, _decoded(path, content)), hashlib.sha256(content).hexdigest()


def json_values(path: Path, content: bytes) -> list[JsonNode]:
    """Read the values of a JSON array, or of JSON Lines, whichever the text is; a single object counts as one value.

    Args:
        path: of the file, for messages.
        content: of it.

    Returns:
        The values, whose errors name their line in JSON Lines.

    Raises:
        DataError: as :func:`read_json`, with the line.
    """
    text = _decoded(path, content)
    if not is_json_lines(text):
        top = _tree(path, text)
        return top.elements() if isinstance(top.value, list) else [top]
    return [_tree(path, line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def is_json_lines(text: str) -> bool:
    """Return whether the first line is a whole value and another line is below it, whatever the file's ending."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest.strip())


def read_whole_lines(path: Path) -> tuple[list[JsonNode], list[DataError], str]:
    """Read the lines of such a file that can be read, for a check that lists several faults at once.

    Returns:
        The values, what is wrong with the other lines, and the file's sha256 in hexadecimal.

    Raises:
        DataError: the file cannot be read, or is not UTF-8.
    """
    content = _content(path)
    nodes: list[JsonNode] = []
    broken: list[DataError] = []
    text = _decoded(path, content, _ADVICE_ENCODING_LINES)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                nodes.append(_tree(path, line, number))
            except DataError as error:
                broken.append(error)
    begun = text.lstrip().startswith("[") and not (nodes and isinstance(nodes[0].value, list))
    if begun and len(broken) > 1:  # every line of it would be a fault of its own
        broken, nodes = [array_error(path)], []
    return nodes, broken, hashlib.sha256(content).hexdigest()


def array_error(path: Path) -> DataError:
    """Make the error of a file that is one JSON array where JSON Lines were expected."""
    return DataError(
        f"{path}: is one JSON array, where one JSON object a line is expected (JSON Lines); "
        f"convert it with: jq -c '.[]' {path.name} > new.jsonl"
    )


def is_empty(path: Path) -> bool:
    """Return whether a file holds nothing but white space.

    Raises:
        DataError: the file cannot be read.
    """
    return not _content(path, "check the path").removeprefix(codecs.BOM_UTF8).strip()


def _content(path: Path, advice: str = "check the path (of a data set: dataset.path, dataset.data_dir)") -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {advice}") from error


def _tree(path: Path, text: str, line: int = 0) -> JsonNode:
    """Parse a file's text, or one line of it, counted from 1."""
    faults = _Faults()
    name = f"{path.name}: line {line}" if line else path.name
    top = JsonNode(_parsed(path, text, line, faults), "", name)
    if faults.values or _SURROGATE_ESCAPE.search(text):
        faults.raise_first(top)
    return top


def _parsed(path: Path, text: str, line: int, faults: "_Faults") -> Json:
    try:
        return json.loads(
            text,
            object_pairs_hook=faults.members,
            parse_int=faults.integer,
            parse_float=faults.number,
            parse_constant=faults.constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        advice = _ADVICE_LINE if line else _ADVICE
        raise DataError(
            f"{path}: no valid JSON at {place} ({error.msg}, {len(text.encode())} bytes read); {advice}"
        ) from error
    except RecursionError as error:
        raise DataError(f"{path}: arrays or objects lie too deep inside each other; correct the file") from error


def _decoded(path: Path, content: bytes, advice: str = _ADVICE_ENCODING) -> str:
    encoding = json.detect_encoding(content)
    if not encoding.startswith("utf-8"):
        raise DataError(f"{path}: not UTF-8 text but {encoding.upper()}; save the file as UTF-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}: line {line}: not UTF-8 text at byte {error.start}; {advice}") from error


@dataclass
class _Faults:
    """Collects values that cannot be kept while a file is parsed, where their place is not known yet.

    ``values`` holds the objects with a key twice, and the placeholders of numbers, with the problem of each.
    """

    values: list[tuple[object, str]] = field(default_factory=list)

    def members(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key = repeated(key for key, _ in pairs)[0]
            self.values.append((found, f"duplicate key {key!r}; remove one of the two"))
        return found

    def integer(self, text: str) -> Json:
        return int(text) if len(text) <= _LONGEST_NUMBER else self._refused(text)

    def number(self, text: str) -> Json:
        value = float(text)
        return value if len(text) <= _LONGEST_NUMBER and math.isfinite(value) else self._refused(text)

    def constant(self, text: str) -> Json:
        return self._refused(text)

    def _refused(self, text: str) -> object:
        placeholder = object()
        what = f"{text} is not a number that can be used" if len(text) <= 20 else f"a number of {len(text)} characters"
        self.values.append((placeholder, f"{what}; write it as a string, or correct it"))
        return placeholder

    def raise_first(self, top: JsonNode) -> None:
        """Raise the error of the first fault in the order of the file, if there is one below ``top``."""
        problems = {id(value): problem for value, problem in self.values}
        waiting = [top]
        while waiting:
            node = waiting.pop()
            problem = problems.get(id(node.value)) or _half_pair(node.value)
            if problem:
                raise node.error(problem)
            waiting += reversed(_below(node))


def _below(node: JsonNode) -> list[JsonNode]:
    if isinstance(node.value, list):
        return node.elements()
    return list(node.members().values()) if isinstance(node.value, dict) else []


def _half_pair(value: Json) -> str:
    """Return the problem of a text or of an object's keys with half of a surrogate pair; else an empty text."""
    texts = value if isinstance(value, dict) else [value] if isinstance(value, str) else []
    for text in texts:
        found = re.search("[\ud800-\udfff]", text)
        if found:
            return f"half of a surrogate pair (\\u{ord(found[0]):04x}) at character {found.start()}, which is not text"
    return ""


def literal(text: str) -> Json:
    """Read a value that is in a text, as Python or JSON writes it.

    Returns:
        The JSON value: tuples are arrays, keys are strings. ``None`` where the text is none, or one that no file can
        hold.
    """
    readers: tuple[Callable[[str], Json], ...] = (_python_literal, lambda given: json.loads(given.replace("'", '"')))
    for read in readers:
        try:
            return json.loads(json.dumps(read(text), allow_nan=False, ensure_ascii=False).encode())
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return None


def _python_literal(text: str) -> Json:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of escapes that Python does not know
        return ast.literal_eval(text)
