"""Checks that config dataclasses share."""

from collections.abc import Mapping
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from memsys.errors import ConfigError, quoted
from memsys.field_types import declared_types, type_problem
from memsys.files import name_problem
from memsys.vocabulary import Json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def check_choices(settings: object, group: str, **choices: Any) -> None:
    """Check fields against ``Literal`` types.

    Raises:
        ConfigError: a value is not one of the choices.
    """
    for key, literal in choices.items():
        value, known = getattr(settings, key), get_args(literal)
        if value not in known:
            raise ConfigError(f"{group}.{key}={value!r} is unknown; choose one of {', '.join(known)}")


def check_minimum(settings: object, group: str, **minima: float) -> None:
    """Check that number fields are finite, at least their minimum, and whole where their type says so.

    Raises:
        ConfigError: a value is not a number, infinite, not whole, or too small.
    """
    for key, minimum in minima.items():
        value = getattr(settings, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value < inf:
            raise ConfigError(f"{group}.{key}={value!r} must be a number, at least {minimum}")
        if isinstance(value, float) and _is_whole(settings, key):
            raise ConfigError(f"{group}.{key}={value!r} must be a whole number, at least {minimum}")


def _is_whole(settings: object, key: str) -> bool:
    """Return whether a field of a dataclass is declared as ``int``, or as ``int | None``."""
    declared = getattr(settings, "__dataclass_fields__", {}).get(key)
    return declared is not None and declared.type in (int, int | None, "int", "int | None")


def check_texts(settings: "DataclassInstance", group: str) -> None:
    """Check that all fields are texts.

    Raises:
        ConfigError: one is not.
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        if not isinstance(value, str):
            raise ConfigError(f"{group}.{field.name}={value!r} must be a text; put it in quotation marks")


def check_template(key: str, text: object, *places: str) -> None:
    """Check that a text names no other places than are filled in, as ``{date}`` is.

    Raises:
        ConfigError: it is not text, or has another place or a single brace.
    """
    known = ", ".join(f"{{{place}}}" for place in places) or "none"
    if not isinstance(text, str):
        raise ConfigError(f"{key}={text!r} must be a text; put it in quotation marks")
    try:
        text.format(**dict.fromkeys(places, ""))
    except (KeyError, IndexError, ValueError) as error:
        raise ConfigError(f"{key}={text!r} cannot be filled in; its places in braces are {known}") from error


def check_name(key: str, value: object) -> None:
    """Check a name that is a part of the name of a folder or file.

    Raises:
        ConfigError: it cannot be (:func:`memsys.files.name_problem`).
    """
    if problem := name_problem(value):
        raise ConfigError(f"{key}={quoted(value)} is a part of the name of a folder; give it one that {problem}")


def refuse_gold(settings: Any, system: str) -> None:
    """Check that ``uses_gold`` is false: the record of a run says whether its memory saw gold evidence.

    Raises:
        ConfigError: it is not.
    """
    if settings.uses_gold:
        raise ConfigError(f"memory.uses_gold=True: {system} never sees gold evidence; set it to false")


def check_optional(settings: object, group: str, **minima: float) -> None:
    """Check number fields that may also be null."""
    check_minimum(
        settings, group, **{key: least for key, least in minima.items() if getattr(settings, key) is not None}
    )


def check_cosines(settings: object, group: str, *keys: str) -> None:
    """Check that fields are cosines.

    Raises:
        ConfigError: a value lies outside [-1, 1].
    """
    check_minimum(settings, group, **dict.fromkeys(keys, -1.0))
    for key in keys:
        if getattr(settings, key) > 1:
            raise ConfigError(f"{group}.{key}={getattr(settings, key)} must be at most 1: it is compared with a cosine")


def check_between(key: str, value: object, least: float, most: float, *, above: bool = False) -> None:
    """Check a number that has two bounds.

    Args:
        key: name of the setting.
        value: as read from YAML.
        least: smallest number that is taken.
        most: largest number that is taken.
        above: take only numbers above ``least``, not ``least`` itself.

    Raises:
        ConfigError: it is not a number, or outside its bounds.
    """
    fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    if not fits or (above and value == least):
        bounds = f"above {least:g} and at most {most:g}" if above else f"from {least:g} to {most:g}"
        raise ConfigError(f"{key}={value!r} must be a number {bounds}")


def check_mapping(key: str, value: object, example: str) -> None:
    """Check a setting that holds settings.

    Args:
        key: name of the setting.
        value: as it was composed.
        example: one of the settings in it.

    Raises:
        ConfigError: it holds none; says how one of them is written.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key}={value!r} must be settings by name; write each by its own, as in {key}.{example}")


def check_share(settings: object, group: str, *keys: str) -> None:
    """Check that fields are numbers from 0 to 1.

    Raises:
        ConfigError: one is not.
    """
    for key in keys:
        value = getattr(settings, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ConfigError(f"{group}.{key}={value!r} must be a number from 0 to 1")


def check_flags(settings: object, group: str, *keys: str) -> None:
    """Check that fields are true or false.

    Raises:
        ConfigError: a value is neither.
    """
    for key in keys:
        value = getattr(settings, key)
        if not isinstance(value, bool):
            raise ConfigError(f"{group}.{key}={value!r} must be true or false")


def from_settings(kind: type[T], settings: Mapping[str, Json], group: str) -> T:
    """Make a dataclass of rules from its YAML mapping.

    Raises:
        ConfigError: it is not a mapping, has an unknown or missing key, or a value of another type than declared.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{group}={settings!r} must be settings by name")
    known = [field.name for field in fields(kind)]
    wrong = [key for key in settings if key not in known]
    missing = [key for key in known if key not in settings]
    if wrong or missing:
        raise ConfigError(
            f"{group}: unknown are {', '.join(wrong) or 'none'}, missing are {', '.join(missing) or 'none'}; "
            f"the keys are {', '.join(known)}"
        )
    for name, declared in declared_types(kind).items():
        # Else a fraction fails where it is first used to cut a list, which may be after hours of ingestion.
        if name in settings and (problem := type_problem(declared, settings[name])):
            raise ConfigError(f"{group}.{name}={settings[name]!r} {problem}")
    return kind(**settings)
