"""Type checks of a part's settings, by the types of its class."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from eval.commands.suggestions import did_you_mean
from memsys.field_types import declared_types, type_problem


def wrong_types(settings: Mapping[str, Any], group: str) -> list[str]:
    """Describe the settings of a part, and of the parts in it, whose values are of another type than their class says.

    Args:
        settings: of the part; ``_target_`` names its class.
        group: dotted name of the part.
    """
    return [*_of(settings, group)]


def misfits(settings: Mapping[str, Any], group: str) -> list[str]:
    """Describe the settings that the class of a part does not have, those that are missing, and those of a wrong type.

    Args:
        settings: of the part; ``_target_`` names its class.
        group: dotted name of the part.
    """
    return [*_keys(settings, group), *_of(settings, group)]


def _keys(settings: Mapping[str, Any], group: str) -> Iterator[str]:
    from hydra.utils import get_object

    kind = get_object(settings["_target_"]) if "_target_" in settings else None
    if isinstance(kind, type) and is_dataclass(kind):
        known = {field.name: field for field in fields(kind) if field.init}
        for key in settings:
            if key not in known and not key.startswith("_"):
                guess = did_you_mean(key, known) or f"; there are {', '.join(known)}"
                yield f"{group}.{key}: {kind.__name__} has no such setting{guess}"
        for name, field in known.items():
            if name not in settings and field.default is MISSING and field.default_factory is MISSING:
                yield f"{group}.{name} is missing; {kind.__name__} needs it"
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{group}.{key}")


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
