"""The one console that everything printed goes through."""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def console() -> "Console":
    """Console on standard output; plain text where it is no terminal."""
    from rich.console import Console

    # Logs and pipes have no width of their own; eighty columns would cut the tables.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(soft_wrap=False, width=None if known else 120)


def complain(message: str) -> None:
    """Write one error message to standard error."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True).print(f"error: {message}", style="bold red", highlight=False, markup=False)
