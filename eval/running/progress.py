"""Progress of a run: bars in a terminal, a line every few seconds if there is none."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol

from eval.commands.counting import duration
from eval.commands.terminal import console, say
from eval.running.eta import AnsweringPace, Pace, WritingPace
from memsys.repeating import RepeatedCall

#: Columns of a row's title and bar in a window in which both fit, and in a narrower one.
_COLUMNS, _NARROW, _WIDE = (34, 24), (18, 8), 100
#: Items a second below which a rate is given by the minute.
_SLOW = 0.1
#: Seconds between two looks at the counters: a turn or question of many calls reports only at its end.
_REPEAT_SECONDS = 1.0


class TrafficSince(NamedTuple):
    """Counters of the backbone since the run began; ``dollars``: ``None`` where no price is known."""

    calls: int
    tokens: int
    in_flight: int
    cache_hits: int
    dollars: float | None = None


class ProgressListener(Protocol):
    """Receiver of the runner's progress."""

    def restored(self, turns: int) -> None:
        """Count turns that were found written."""

    def wrote(self, turns: int, seconds: float) -> None:
        """Count written turns."""

    def retrieved(self, seconds: float) -> None:
        """Count the retrieval of one question."""

    def answered(self, seconds: float) -> None:
        """Count one answered question, with the seconds since its retrieval."""


@dataclass(slots=True)
class RunTotals:
    """Total work, and the part that a resumed run found done."""

    turns: int
    questions: int
    turns_done: int = 0
    questions_done: int = 0


@dataclass(frozen=True, slots=True)
class DisplayState:
    """Notes and titles of a run's display besides its counts.

    Attributes:
        title: memory and data set.
        traffic: the backbone's counters.
        loading: name of the embedder whose model is still being loaded; empty where none is.
        clock: seconds from any beginning.
    """

    title: str
    traffic: Callable[[], TrafficSince]
    loading: str = ""
    clock: Callable[[], float] = time.monotonic


class RunProgress:
    """Counts and time left of writing and answering; its subclasses show them.

    Rates are measured from the moment at which the embedder's model is there: loading is not part of them.
    """

    def __init__(self, totals: RunTotals, shown: DisplayState) -> None:
        self.shown = shown
        self.turns = WritingPace(totals.turns, totals.turns_done, shown.clock)
        self.questions = AnsweringPace(totals.questions, totals.questions_done, shown.clock)
        self.loading = bool(shown.loading)
        self.begun = shown.clock()

    def restored(self, turns: int) -> None:
        """Count turns that a snapshot holds."""
        self.turns.skip(turns)
        self.show()

    def wrote(self, turns: int, seconds: float) -> None:
        """Count written turns."""
        self.turns.wrote(turns, seconds)
        self.show()

    def retrieved(self, seconds: float) -> None:
        """Count a question whose memories were retrieved."""
        self.questions.retrieved(seconds)

    def answered(self, seconds: float) -> None:
        """Count an answered question."""
        if self._all_from_cache():
            self.questions.found()
        else:
            self.questions.answered(seconds)
        self.show()

    def _all_from_cache(self) -> bool:
        """Return whether all replies so far came from the cache, as at the start of a resumed run."""
        traffic = self.shown.traffic()
        return 0 < traffic.calls == traffic.cache_hits

    def loaded(self, seconds: float) -> None:
        """Start the rates: the embedder's model is loaded."""
        self.loading = False
        self.turns.restart()
        self.questions.restart()

    def time_left(self, pace: Pace) -> str:
        """Time left of one of the two as text; empty where nothing can be said, which is so while a model loads."""
        left = None if self.loading else pace.seconds_left()
        return "" if not left else f"{duration(left)} left"

    def note(self) -> str:
        """Return a note on the backbone's traffic."""
        return traffic_note(self.shown.traffic(), self.shown.clock() - self.begun)

    def show(self) -> None:
        """Show the counts as they are."""


class TerminalProgress(RunProgress):
    """Two rich bars (turns written, questions answered) with rates and time left, and the backbone's traffic."""

    def __init__(self, totals: RunTotals, shown: DisplayState) -> None:
        from rich import progress as bars

        super().__init__(totals, shown)
        wide = console().width >= _WIDE
        title, bar = _COLUMNS if wide else _NARROW
        self._room = console().width - title - bar - 2
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(bar_width=bar),
            bars.TextColumn("{task.fields[text]}", markup=False),
            console=console(),
            refresh_per_second=2,
        )
        writing = f"{shown.title}: turns written" if wide else "turns written"
        self._rows = [
            self._bars.add_task(f"{name:<{title}}", total=pace.items, completed=pace.done, text="")
            for name, pace in ((writing, self.turns), ("questions answered", self.questions))
        ]
        self._loading = self._bars.add_task(
            f"{'loading ' + shown.loading:<{title}}", total=None, visible=self.loading, text=""
        )
        self._repeated = RepeatedCall(self.show, _REPEAT_SECONDS, "progress")

    def __enter__(self) -> "TerminalProgress":
        self._bars.start()
        self.show()
        self._repeated.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._repeated.stop()
        self.show()
        self._bars.stop()

    def loaded(self, seconds: float) -> None:
        """Take the loading away."""
        super().loaded(seconds)
        self._bars.update(self._loading, visible=False)

    def show(self) -> None:
        """Update both bars."""
        for row, pace in zip(self._rows, (self.turns, self.questions), strict=True):
            self._bars.update(row, completed=pace.done, text=self._text(pace))

    def _text(self, pace: Pace) -> str:
        """Return counts, rate, time left and traffic; what does not fit into the window is left out, the last first."""
        speed = pace.rate()
        notes = self.note().split(", ") if pace is self._under_way() else []
        parts = [
            f"{pace.done}/{pace.items}",
            self.time_left(pace),
            rate(speed, "") if speed and not self.loading else "",
            *notes,
        ]
        parts = [part for part in parts if part]
        while len("  ".join(parts)) > self._room and len(parts) > 1:
            parts.pop()
        return "  ".join(parts)

    def _under_way(self) -> Pace:
        return self.turns if self.turns.done < self.turns.items else self.questions


class LineProgress(RunProgress):
    """One line at the start, every ``every`` seconds, and at the end; for logs and batch systems.

    Where nothing ended since the last line, the next one waits twice as long: one reply may take minutes.
    """

    def __init__(self, totals: RunTotals, shown: DisplayState, every: float = 15.0) -> None:
        super().__init__(totals, shown)
        self._every, self._last = every, self.begun
        self._wait, self._said, self._changed = every, (-1, -1, -1), self.begun
        self._saying = threading.Lock()
        self._repeated = RepeatedCall(self.show, _REPEAT_SECONDS, "progress")

    def __enter__(self) -> "LineProgress":
        self._say()
        self._repeated.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._repeated.stop()
        self._say()

    def loaded(self, seconds: float) -> None:
        """Say that the model is there."""
        super().loaded(seconds)
        _print(f"loaded {self.shown.loading} in {seconds:.1f} s")

    def show(self) -> None:
        """Write a line if the last one is old enough."""
        with self._saying:
            now, ended = self.shown.clock(), self._ended()
            if ended != self._said:
                self._wait = self._every
            if now - self._last >= self._wait:
                self._say()

    def _say(self) -> None:
        self._last, ended = self.shown.clock(), self._ended()
        if ended != self._said:
            self._changed = self._last
        else:
            self._wait *= 2
        self._said = ended
        _print(", ".join(part for part in self._parts() if part))

    def _ended(self) -> tuple[int, int, int]:
        """Return how many turns, questions and calls have ended."""
        return self.turns.done, self.questions.done, self.shown.traffic().calls

    def _parts(self) -> Iterator[str]:
        turns, questions = self.turns, self.questions
        yield f"{self.shown.title}: {turns.done}/{turns.items} turns, {questions.done}/{questions.items} questions"
        writing, answering = self.time_left(turns), self.time_left(questions)
        yield f"writing: {writing}" if writing else ""
        yield f"answering: {answering}" if answering else ""
        yield f"loading {self.shown.loading}" if self.loading else self.note()
        quiet = self._last - self._changed
        yield f"no call ended for {duration(quiet)}" if quiet >= self._every > 0 and not self.loading else ""


def _print(line: str) -> None:
    say(line)


def rate(per_second: float, unit: str) -> str:
    """Return a rate as text, e.g. ``2.0 calls/s``; by the minute where it is low."""
    often, by = (per_second, "s") if per_second >= _SLOW else (60 * per_second, "min")
    return f"{often:.1f}{unit}/{by}"


def traffic_note(traffic: TrafficSince, seconds: float) -> str:
    """Return money, calls and tokens per second, requests in flight, cached replies; empty before the first request."""
    if not traffic.calls:
        return f"{traffic.in_flight} in flight" if traffic.in_flight else ""
    seconds = max(seconds, 1e-9)
    hits = f", {traffic.cache_hits} cached" if traffic.cache_hits else ""
    spent = "" if traffic.dollars is None else f"${traffic.dollars:.4f}, "
    return (
        f"{spent}{rate(traffic.calls / seconds, ' calls')}, {traffic.tokens / seconds:.0f} tokens/s, "
        f"{traffic.in_flight} in flight{hits}"
    )


def make_progress(style: str, totals: RunTotals, shown: DisplayState) -> TerminalProgress | LineProgress:
    """Choose bars or lines: ``auto`` takes bars in a terminal, ``bars`` and ``lines`` insist."""
    if style == "bars" or (style == "auto" and console().is_terminal):
        return TerminalProgress(totals, shown)
    return LineProgress(totals, shown)
