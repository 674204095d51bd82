"""Progress of a run: bars in a terminal, a line every few seconds where there is none."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from eval.terminal import console


class Traffic(NamedTuple):
    """Counters of the backbone since the run began."""

    calls: int
    tokens: int
    in_flight: int
    cache_hits: int


class Progress(Protocol):
    """What the runner tells about its progress."""

    def wrote(self, turns: int) -> None:
        """Some turns were written."""

    def answered(self) -> None:
        """One question was answered."""


@dataclass(slots=True)
class Totals:
    """How much there is to do, and how much a resumed run found done."""

    turns: int
    questions: int
    turns_done: int = 0
    questions_done: int = 0


class TerminalProgress:
    """Two rich bars (turns written, questions answered) with rates and time left, and the backbone's traffic."""

    def __init__(self, title: str, totals: Totals, traffic: Callable[[], Traffic]) -> None:
        from rich import progress as bars

        self._traffic = traffic
        self._begun = time.monotonic()
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(bar_width=24),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[rate]}", markup=False),
            bars.TimeRemainingColumn(),
            bars.TextColumn("{task.fields[note]}", markup=False),
            console=console(),
            refresh_per_second=2,
        )
        self._turns = self._bar(f"{title}: turns written", totals.turns, totals.turns_done)
        self._questions = self._bar("questions answered", totals.questions, totals.questions_done)

    def _bar(self, title: str, total: int, done: int) -> Any:
        return self._bars.add_task(f"{title:<34}", total=total, completed=done, rate="", note="")

    def __enter__(self) -> "TerminalProgress":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._update(self._questions)
        self._bars.stop()

    def wrote(self, turns: int) -> None:
        """Advance the first bar."""
        self._bars.advance(self._turns, turns)
        self._update(self._turns)

    def answered(self) -> None:
        """Advance the second bar."""
        self._bars.advance(self._questions)
        self._update(self._questions)

    def _update(self, bar: Any) -> None:
        speed = next((task.speed for task in self._bars.tasks if task.id == bar), None)
        self._bars.update(bar, rate=f"{speed:.1f}/s" if speed else "", note=traffic_note(self._traffic(), self._begun))


class LineProgress:
    """One line at the start, every ``every`` seconds, and at the end; for logs and batch systems."""

    def __init__(self, title: str, totals: Totals, traffic: Callable[[], Traffic], every: float = 15.0) -> None:
        self._title, self._totals, self._traffic, self._every = title, totals, traffic, every
        self._turns, self._questions = totals.turns_done, totals.questions_done
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> "LineProgress":
        self._say()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say()

    def wrote(self, turns: int) -> None:
        """Count turns."""
        self._turns += turns
        self._say_now_and_then()

    def answered(self) -> None:
        """Count a question."""
        self._questions += 1
        self._say_now_and_then()

    def _say_now_and_then(self) -> None:
        if time.monotonic() - self._last >= self._every:
            self._say()

    def _say(self) -> None:
        self._last = time.monotonic()
        totals = self._totals
        line = f"{self._title}: {self._turns}/{totals.turns} turns, {self._questions}/{totals.questions} questions"
        left = self._seconds_left()
        note = traffic_note(self._traffic(), self._begun)
        console().print(f"{line}{f', {left:.0f} s left' if left else ''}{f', {note}' if note else ''}", highlight=False)

    def _seconds_left(self) -> float | None:
        """Time left of the stage that is running: writing until every turn is written, then answering."""
        totals, spent = self._totals, time.monotonic() - self._begun
        done, total, before = self._turns, totals.turns, totals.turns_done
        if done >= total:
            done, total, before = self._questions, totals.questions, totals.questions_done
        return spent * (total - done) / (done - before) if before < done < total else None


def traffic_note(traffic: Traffic, begun: float) -> str:
    """Calls and tokens per second since ``begun``, requests in flight, share of replies from the cache."""
    if not traffic.calls:
        return ""
    seconds = max(time.monotonic() - begun, 1e-9)
    hits = f", {traffic.cache_hits} cached" if traffic.cache_hits else ""
    return (
        f"{traffic.calls / seconds:.1f} calls/s, {traffic.tokens / seconds:.0f} tokens/s, "
        f"{traffic.in_flight} in flight{hits}"
    )


def make_progress(
    style: str, title: str, totals: Totals, traffic: Callable[[], Traffic]
) -> TerminalProgress | LineProgress:
    """Choose bars or lines: ``auto`` takes bars in a terminal, ``bars`` and ``lines`` insist."""
    if style == "bars" or (style == "auto" and console().is_terminal):
        return TerminalProgress(title, totals, traffic)
    return LineProgress(title, totals, traffic)
