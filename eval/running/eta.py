"""Estimates of the remaining time, from measured seconds; independent of any display."""

import time
from collections import deque
from collections.abc import Callable

Clock = Callable[[], float]

#: The time left of writing goes by the turns of at least this many seconds, and by at least this many turns.
_RECENT_SECONDS = 120.0
_RECENT_TURNS = 20


class Pace:
    """Items done and to do, and the rate since work began.

    Args:
        items: how many there are.
        done: of these, done before this process began.
        clock: seconds from any beginning.
    """

    def __init__(self, items: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        self.items, self.done = items, done
        self._clock = clock
        self._begun: float | None = None
        self._done_before = done

    def skip(self, items: int) -> None:
        """Count items that were found done."""
        self.done += items
        self._done_before += items

    def restart(self) -> None:
        """Measure from here on, if work has begun: what is already done does not count for the rate."""
        if self._begun is not None:
            self._begun, self._done_before = self._clock(), self.done

    def rate(self) -> float | None:
        """Return items per second; ``None`` before the first."""
        spent = 0.0 if self._begun is None else self._clock() - self._begun
        return (self.done - self._done_before) / spent if spent > 0 and self.done > self._done_before else None

    def seconds_left(self) -> float | None:
        """Return the seconds until all items are done; ``None`` before the first."""
        rate = self.rate()
        return 0.0 if self.done >= self.items else (self.items - self.done) / rate if rate else None


class WritingPace(Pace):
    """Turns, which are written one after the other once they are prepared.

    Many are prepared before the first is written. Time is therefore measured from the end of the first write on: the
    time until then says nothing about the time between two writes. What a turn costs changes on the way (a memory that
    first fills a buffer, replies that a stopped run left in the cache), so the time left goes by the latest turns.
    """

    def __init__(self, items: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        super().__init__(items, done, clock)
        self._ends: deque[tuple[float, int]] = deque()  # when the latest writes ended, and how many were done then

    def restart(self) -> None:
        """See :meth:`Pace.restart`."""
        super().restart()
        self._ends.clear()

    def wrote(self, turns: int, seconds: float) -> None:
        """Count turns, the writing of which took these seconds."""
        now = self._clock()
        self.done += turns
        self._begun = now - seconds if self._begun is None else self._begun
        self._ends.append((now, self.done))
        while len(self._ends) > 1 and self._is_old(self._ends[1]):
            self._ends.popleft()

    def seconds_left(self) -> float | None:
        """See :meth:`Pace.seconds_left`."""
        if len(self._ends) < 2:
            return super().seconds_left()
        moment, done = self._ends[0]
        return (self._clock() - moment) / (self.done - done) * (self.items - self.done)

    def _is_old(self, end: tuple[float, int]) -> bool:
        return self._clock() - end[0] > _RECENT_SECONDS and self.done - end[1] > _RECENT_TURNS


class AnsweringPace(Pace):
    """Questions, many at once, each of which is retrieved for and then answered.

    Before the first is answered, many have been retrieved for. Counting answers alone would take that for slowness: the
    share done is that of the work, in which each step weighs its mean seconds.
    """

    def __init__(self, items: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        super().__init__(items, done, clock)
        self._retrieved = self._answered = 0
        self._retrieve_seconds = self._answer_seconds = self._work_before = 0.0

    def restart(self) -> None:
        """See :meth:`Pace.restart`."""
        super().restart()
        self._work_before = self._retrieve_seconds + self._answer_seconds

    def retrieved(self, seconds: float) -> None:
        """Count a question that was retrieved for in these seconds."""
        self._begin(seconds)
        self._retrieved += 1
        self._retrieve_seconds += seconds

    def answered(self, seconds: float) -> None:
        """Count a question that was answered in these seconds, after it was retrieved for."""
        self._begin(seconds)
        self.done += 1
        self._answered += 1
        self._answer_seconds += seconds

    def found(self) -> None:
        """Count a question all calls of which were found in the cache; it says nothing about those that are asked."""
        self.skip(1)
        self._retrieved = max(self._retrieved - 1, 0)

    def seconds_left(self) -> float | None:
        """See :meth:`Pace.seconds_left`."""
        done = self._retrieve_seconds + self._answer_seconds - self._work_before
        if self._begun is None or not self._answered or done <= 0 or self.done >= self.items:
            return super().seconds_left()
        unanswered = self.items - self.done
        unretrieved = max(unanswered + self._answered - self._retrieved, 0)
        left = unretrieved * self._retrieve_seconds / max(self._retrieved, 1)
        left += unanswered * self._answer_seconds / self._answered
        return (self._clock() - self._begun) * left / done

    def _begin(self, seconds: float) -> None:
        if self._begun is None:
            self._begun = self._clock() - seconds
