"""Options that are whole numbers."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def count(least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """Make a parser of an option's whole number, as the ``type`` of :mod:`argparse`.

    Args:
        least: smallest number that is taken; others are an error that names the option.
        most: largest number that is taken; ``None`` for no limit.
    """
    wanted = f"from {least} on" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise ArgumentTypeError(f"{text!r} cannot be used; give a whole number {wanted}")
        return number

    return read
