"""Values of an override that Hydra parsed: of a sweep, of a choice, or of its first cell."""

from collections.abc import Iterator
from typing import Any

from memsys.errors import ConfigError


def sweep_values(override: Any) -> Iterator[str]:
    """Yield the values of a sweep as texts.

    Raises:
        ConfigError: the sweep cannot be made, such as a range whose step is 0.
    """
    try:
        yield from override.sweep_string_iterator()
    except ValueError as error:  # of range(...)
        raise ConfigError(f"{override.input_line}: {error}") from error


def chosen_values(override: Any) -> Iterator[Any]:
    """Yield the values of a choice: one, several of a sweep, or those of a list."""
    if override.is_sweep_override():
        yield from (text.strip("'\"") for text in sweep_values(override))
        return
    value = override.value()
    yield from value if isinstance(value, list) else [value]


def first_cell(override: Any) -> str:
    """Return the setting with its first value."""
    if not override.is_sweep_override():
        return str(override.input_line)
    sign, key = "+" if override.is_add() else "", override.get_key_element().lstrip("+~")
    return f"{sign}{key}={next(sweep_values(override))}"


def of_one_value(override: Any) -> str:
    """Return the setting as a sweep of its one value, which Hydra gives to the cells of a sweep alone."""
    key, _, value = str(override.input_line).partition("=")
    return f"{key}=choice({value or repr('')})"
