"""Which settings of a part have the wrong type, found by the types of its class."""

from collections.abc import Iterator, Mapping
from typing import Any

from memsys.field_types import declared_types, type_problem


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
    declared = declared_types(get_object(target)) if target else {}
    for key, value in settings.items():
        if problem := type_problem(declared.get(key), value):
            yield f"{group}.{key}={value!r} {problem}"
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _of(value, f"{group}.{key}")
