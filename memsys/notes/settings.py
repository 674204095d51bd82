"""Checks that config dataclasses share."""

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from memsys.errors import ConfigError
from memsys.vocabulary import Json

T = TypeVar("T")


def check_choices(settings: object, group: str, **choices: Any) -> None:
    """Check fields against ``Literal`` types.

    Raises:
        ConfigError: a value is none of the choices.
    """
    for key, literal in choices.items():
        value, known = getattr(settings, key), get_args(literal)
        if value not in known:
            raise ConfigError(f"{group}.{key}={value!r} is unknown; choose one of {', '.join(known)}")


def check_minimum(settings: object, group: str, **minima: float) -> None:
    """Check that number fields are at least their minimum.

    Raises:
        ConfigError: a value is no number or too small.
    """
    for key, minimum in minima.items():
        value = getattr(settings, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < minimum:
            raise ConfigError(f"{group}.{key}={value!r} must be a number, at least {minimum}")


def from_settings(kind: type[T], settings: Mapping[str, Json], group: str) -> T:
    """Make a dataclass of rules from its YAML mapping.

    Raises:
        ConfigError: an unknown or missing key.
    """
    try:
        return kind(**settings)
    except TypeError as error:
        raise ConfigError(f"{group}: {error}") from error
