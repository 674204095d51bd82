"""Checks of values in a parsed reply, so that arithmetic, files and messages can use them."""

from typing import Any

#: Levels of objects and lists; replies of roles have three or four.
MAX_DEPTH = 64
#: Digits of a number that a reply writes as text; no list here is longer, and Python refuses to read thousands of them.
_LONGEST_NUMBER = 9


def check_value(value: Any, depth: int) -> None:
    """Refuse a number that no float can hold, and values nested too deeply.

    Args:
        value: one value of the parsed reply.
        depth: how many objects and lists are around it.

    Raises:
        ValueError: an integer of hundreds of digits, an infinite or undefined number, or over ``MAX_DEPTH`` levels.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, int | float):
        finite(value)


def finite(value: Any) -> float:
    """Return a number as a float.

    Raises:
        ValueError: it is infinite or undefined, or has more digits than a float can hold.
        TypeError: it is not a number.
    """
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError("a number beyond what a float can hold") from error
    if number - number != 0.0:
        raise ValueError(f"{number} is not a finite number")
    return number


def whole_number(text: str) -> int | None:
    """Read a whole number that a reply writes as text; ``None`` if it is not one, or has more digits than a place."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else None
