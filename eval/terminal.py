"""The one console that everything printed goes through."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def console() -> "Console":
    """Console on standard output; plain text where it is no terminal."""
    from rich.console import Console

    return Console(soft_wrap=False)


def complain(message: str) -> None:
    """Write one error message to standard error."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True).print(f"error: {message}", style="bold red", highlight=False, markup=False)
