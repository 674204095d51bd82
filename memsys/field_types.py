"""Type checks of settings against the types that their class declares, and their messages."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

#: What a value of a type is called in a message. Other types are left to the classes' own checks.
_NAMES: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Mapping: "settings by name",
    Sequence: "a list",
}


def declared_types(kind: type) -> Mapping[str, Any]:
    """Return the declared types of a dataclass's fields, by name."""
    return _hints(kind)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def type_problem(declared: Any, value: Any) -> str:
    """Say what a value must be, as in ``must be a whole number, or null``; empty where it is that.

    Args:
        declared: the field's type; one that is not a plain type fits every value.
        value: as read from YAML. Integers fit ``float``; ``nan`` and infinite numbers fit nothing.
    """
    kinds = _kinds(declared)
    if not kinds or any(_fits(value, kind) for kind in kinds):
        return ""
    names = [_NAMES[kind] for kind in kinds if kind is not NoneType]
    if isinstance(value, float) and float in kinds:
        names = ["a finite number"]
    return f"must be {' or '.join(names)}{', or null' if NoneType in kinds else ''}"


def _kinds(declared: Any) -> tuple[Any, ...]:
    """Return the types that a value may have; empty if one of them is not checked."""
    options = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    kinds = tuple(get_origin(option) or option for option in options)
    return kinds if all(kind in _NAMES or kind is NoneType for kind in kinds) else ()


def _fits(value: Any, kind: Any) -> bool:
    if kind is NoneType or value is None:
        return kind is NoneType and value is None
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is Sequence:
        return isinstance(value, list | tuple)
    if kind is float:
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, kind)
