"""Progress over a known number of items, for commands that wait for a model."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eval.commands.terminal import console, say

#: Where the output is not a terminal, a line is written so often.
_LINE_SECONDS = 15.0
#: The time left is shown once this share is done: all requests are sent at once, so that the first replies come late.
_TOLD_FROM = 0.1


@contextmanager
def counted(title: str, total: int, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[], None]]:
    """Show how many items are done: a bar in a terminal, else lines at the beginning, every 15 s, and at the end.

    Args:
        title: what is done to them.
        total: items; with none nothing is shown.
        clock: seconds from any beginning.

    Yields:
        a function that is called with every item that is done.
    """
    if not total:
        yield lambda: None
    elif console().is_terminal:
        with _BARS.row(title, total) as one_done:
            yield one_done
    else:
        lines = _Lines(title, total, clock)
        yield lines.one_done
        lines.end()


def duration(seconds: float) -> str:
    """Return seconds as text: ``45 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _bar() -> Any:
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left:"),
        progress.TimeRemainingColumn(),
        console=console(),
        refresh_per_second=2,
    )


class _Bars:
    """Bars of everything that is counted at a time, in one display."""

    def __init__(self) -> None:
        self._rows = 0
        self._display: Any = None

    @contextmanager
    def row(self, title: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar while the block runs; yields what moves it on by one."""
        if self._display is None:
            self._display = _bar()
            self._display.start()
        display, self._rows = self._display, self._rows + 1
        row = display.add_task(title, total=total)
        try:
            yield lambda: display.advance(row)
        finally:
            self._rows -= 1
            if not self._rows:
                self._display = None
                display.stop()


_BARS = _Bars()


class _Lines:
    """Lines for logs and batch systems."""

    def __init__(self, title: str, total: int, clock: Callable[[], float]) -> None:
        self._title, self._total, self._clock = title, total, clock
        self._done = 0
        self._begun = self._said = clock()
        self._say("")

    def one_done(self) -> None:
        """Count one more."""
        self._done += 1
        now = self._clock()
        if now - self._said >= _LINE_SECONDS and self._done < self._total:
            self._said = now
            left = (now - self._begun) / self._done * (self._total - self._done)
            self._say(f", {duration(left)} left" if self._done >= _TOLD_FROM * self._total else "")

    def end(self) -> None:
        """Say what was done in the end."""
        self._say(f" in {duration(self._clock() - self._begun)}")

    def _say(self, more: str) -> None:
        say(f"{self._title}: {self._done}/{self._total}{more}")


def short(number: float) -> str:
    """Return a large number in three digits or so: ``3.1 M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if round(1000 * number / size, 1) >= 1000:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"
