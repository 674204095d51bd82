"""Rows of stored JSON as records: every field's type is checked, so that a damaged file ends in one clear message."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: Turns a JSON value into a field's value.
_Reader = Callable[[Any], Any]

_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", NoneType: "null"}
_SHOWN_CHARS = 60
#: Counts and numbers of categories are far below; JSON allows integers that no arithmetic can use.
_LARGEST_INTEGER = 2**63


class RowError(ValueError):
    """A row is not of its record's shape. ``where`` names the field, from the row down."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(f"field {where}: {problem}" if where else problem)
        self.problem, self.where = problem, where

    def within(self, outer: str) -> "RowError":
        """Return the same error, seen from the object or list that holds the place."""
        inner = self.where if not self.where or self.where.startswith("[") else f".{self.where}"
        return RowError(self.problem, f"{outer}{inner}")


def record_from(kind: type[T], row: Any) -> T:
    """Make a record of a row.

    Args:
        kind: a dataclass whose fields are texts, numbers, truth values, ``None``, literals, lists and mappings of
            these, or dataclasses; ``Any`` is not looked into.
        row: as parsed from JSON.

    Raises:
        RowError: the row is not an object, lacks a field, has an unknown one, or holds a value of another type.
    """
    reader: _Reader = _reader(kind)  # type: ignore[arg-type]  # the cache asks for a hashable argument: a class is one
    made: T = reader(row)
    return made


def check_fields(kind: type, row: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return an object of which only some of a record's fields are needed; the others may be missing or unknown.

    Args:
        kind: the dataclass.
        row: as parsed from JSON.
        names: fields that must be there.

    Raises:
        RowError: the row is not an object, lacks one of ``names``, or a field of ``kind`` in it is of another type.
    """
    found = _object(row)
    for name in names:
        if name not in found:
            raise RowError(f"is missing; found are {', '.join(map(str, found)) or 'none'}", name)
    for name, read in _field_readers(kind).items():
        if name in found:
            _within(name, read, found[name])
    return found


@cache
def _field_readers(kind: type) -> Mapping[str, _Reader]:
    hints = get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in fields(kind)}


@cache
def _reader(annotation: Any) -> _Reader:
    """Make the reader of an annotation."""
    if annotation is Any:
        return lambda value: value
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if is_dataclass(annotation) and isinstance(annotation, type):
        return _record_reader(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _choice_reader(arguments)
    if origin in (Union, UnionType):
        return _optional_reader(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(arguments[1]))
    if origin is not None and issubclass(origin, Sequence):
        return _list_reader(_reader(arguments[0]), tuple if origin is tuple else list)
    raise TypeError(f"rows of {annotation} cannot be read")


def _record_reader(kind: type) -> _Reader:
    readers = _field_readers(kind)
    required = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]

    def read(value: Any) -> Any:
        row = _object(value)
        for name in required:
            if name not in row:
                raise RowError("is missing", name)
        made = {}
        for name, given in row.items():
            one = readers.get(name)
            if one is None:
                raise RowError("is not a field of this version", str(name))
            try:
                made[name] = one(given)
            except RowError as error:
                raise error.within(name) from None
        return kind(**made)

    return read


def _choice_reader(choices: Sequence[Any]) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise _wrong(f"one of {', '.join(map(str, choices))}", value)
        return value

    return read


def _optional_reader(kinds: Sequence[Any]) -> _Reader:
    inner = [kind for kind in kinds if kind is not NoneType]
    if len(inner) != 1 or len(kinds) != 2:
        raise TypeError(f"rows of {kinds} cannot be read")
    read = _reader(inner[0])
    return lambda value: None if value is None else read(value)


def _mapping_reader(read_one: _Reader) -> _Reader:
    return lambda value: {name: _within(str(name), read_one, given) for name, given in _object(value).items()}


def _list_reader(read_one: _Reader, make: Callable[[list[Any]], Any]) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _wrong("a list", value)
        try:
            return make([read_one(given) for given in value])
        except RowError:
            for number, given in enumerate(value):
                _within(f"[{number}]", read_one, given)
            raise

    return read


def _within(name: str, read: _Reader, value: Any) -> Any:
    try:
        return read(value)
    except RowError as error:
        raise error.within(name) from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("a text", value)
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        raise _wrong("an integer below 2**63", value)
    return value


def _float(value: Any) -> float:
    if type(value) is int:
        return _integer(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise _wrong("a finite number", value)
    return value


def _wrong(expected: str, value: Any) -> RowError:
    kind = _NAMES.get(type(value))
    try:
        shown = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        shown = "an integer of thousands of digits"
    cut = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}..."
    return RowError(f"expected {expected}, found {f'{kind} ' if kind and value is not None else ''}{cut}")


_PLAIN: Mapping[Any, _Reader] = {str: _text, bool: _truth, int: _integer, float: _float}
