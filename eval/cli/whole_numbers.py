"""Numbers of command lines."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def count(least: int = 0) -> Callable[[str], int]:
    """How an option's whole number is read, as the ``type`` of :mod:`argparse`.

    Args:
        least: smallest number that is taken; others are an error that names the option.
    """

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ArgumentTypeError(f"{text} cannot be used; give a whole number from {least} on")
        return number

    return read
