"""Which settings of a part have the wrong type, found by the types of its class."""

from collections.abc import Iterator, Mapping, Sequence
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


def wrong_types(settings: Mapping[str, Any], group: str) -> list[str]:
    """Describe the settings of a part, and of the parts in it, whose values are of another type than their class says.

    Args:
        settings: of the part; ``_target_`` names its class.
        group: dotted name of the part.
    """
    return [*_of(settings, group)]


def _of(settings: Mapping[str, Any], group: str) -> Iterator[str]:
    from hydra.utils import get_object

    target = settings.get("_target_")
    hints = get_type_hints(get_object(target)) if target else {}
    for key, value in settings.items():
        kinds = _kinds(hints.get(key))
        if kinds and not any(_fits(value, kind) for kind in kinds):
            names = [_NAMES[kind] for kind in kinds if kind is not NoneType]
            null = ", or null" if NoneType in kinds else ""
            yield f"{group}.{key}={value!r} must be {' or '.join(names)}{null}"
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _of(value, f"{group}.{key}")


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a value may have; empty where one of them is none of those that are checked."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(get_origin(option) or option for option in options)
    return kinds if all(kind in _NAMES or kind is NoneType for kind in kinds) else ()


def _fits(value: Any, kind: Any) -> bool:
    if kind is NoneType or value is None:
        return kind is NoneType and value is None
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is Sequence:
        return isinstance(value, list | tuple)
    return isinstance(value, int | float if kind is float else kind)
