"""The consoles that everything printed goes through: nothing that is printed is read as a command or as markup."""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def console(least_width: int = 0) -> "Console":
    """Console on standard output; plain text where it is no terminal.

    Args:
        least_width: columns that a table needs; in a narrow window a wrapped line is easier to read than a cut one.
    """
    from eval.safe_console import SafeConsole

    # Logs and pipes have no width of their own; eighty columns would cut the tables.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    found = SafeConsole(soft_wrap=False, width=None if known else 120)
    return SafeConsole(soft_wrap=False, width=max(found.width, least_width)) if least_width else found


def complain(message: str) -> None:
    """Write one error message to standard error, without keys."""
    from eval.safe_console import SafeConsole
    from memsys.credentials import redacted

    SafeConsole(stderr=True, soft_wrap=True).print(f"error: {redacted(message)}", style="bold red", highlight=False)
