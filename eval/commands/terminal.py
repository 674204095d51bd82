"""Terminal output: consoles that interpret no markup, and the line that names the current stage."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: Where the output is not a terminal, a stage is named if nothing was said for so long: logs of short commands stay
#: short.
_QUIET_SECONDS = 3.0
#: The same stage, shown again after one within it, is named again after so long.
_SAME_SECONDS = 60.0


@cache
def console() -> "Console":
    """Return the console on standard output; plain text where it is not a terminal."""
    from eval.commands.safe_console import SafeConsole

    # Logs and pipes have no width of their own; eighty columns would cut the tables.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return SafeConsole(soft_wrap=False, width=None if known else 120)


def say(text: str, style: str | None = None) -> None:
    """Print lines as they are, however long: nothing in them is markup, and no number is coloured."""
    console().print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def complain(message: str) -> None:
    """Write one error message to standard error, without keys."""
    from eval.commands.safe_console import SafeConsole
    from memsys.credentials import redacted

    SafeConsole(stderr=True, soft_wrap=True).print(f"error: {redacted(message)}", style="bold red", highlight=False)


class Stages:
    """Display of a command's stage: a line with a spinner and seconds in a terminal, else lines on standard error.

    Args:
        clock: seconds from any beginning.
        write: writes one line where the output is not a terminal.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], Any] | None = None) -> None:
        self._clock, self._write = clock, write or _to_standard_error
        self._titles: list[str] = []
        self._said = clock()
        self._when: dict[str, float] = {}  # titles, and when each was written last
        self._display: Any = None

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show a title while the block runs; within a stage, the inner title is shown for its time."""
        if not self._titles:
            self._said = self._clock()
            self._when.clear()
        self._titles.append(title)
        self._show()
        try:
            yield
        finally:
            self._titles.pop()
            self._show()

    def _show(self) -> None:
        if not console().is_terminal:
            self._say()
        elif self._titles:
            self._display = self._display or _spinner()
            self._display.reset(0, description=self._titles[-1])
        elif self._display is not None:
            self._display.stop()
            self._display = None

    def _say(self) -> None:
        now, title = self._clock(), self._titles[-1] if self._titles else ""
        again = now - self._when[title] >= _SAME_SECONDS if title in self._when else True
        if title and again and now - self._said >= _QUIET_SECONDS:
            self._said = self._when[title] = now
            self._write(title)


def _spinner() -> Any:
    from rich import progress

    display = progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.TimeElapsedColumn(),
        console=console(),
        transient=True,
        refresh_per_second=4,
    )
    display.add_task("", total=None)
    display.start()
    return display


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line} ...\n")
    sys.stderr.flush()


_STAGES = Stages()


def stage(title: str) -> Any:
    """Show what the command is at while a block runs; see :meth:`Stages.stage`."""
    return _STAGES.stage(title)


@contextmanager
def announced(title: str, tell: Callable[[str], None] = say) -> Iterator[None]:
    """Show what the command is at while a block runs, with a line of its own in logs, where no spinner stays."""
    if not console().is_terminal:
        tell(title)
    with stage(title):
        yield
