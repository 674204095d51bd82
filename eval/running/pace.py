"""How long work still takes, from measured seconds; nothing of it knows a display."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


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
        """Items a second; ``None`` before the first."""
        spent = 0.0 if self._begun is None else self._clock() - self._begun
        return (self.done - self._done_before) / spent if spent > 0 and self.done > self._done_before else None

    def seconds_left(self) -> float | None:
        """Seconds until all items are done; ``None`` before one is."""
        rate = self.rate()
        return 0.0 if self.done >= self.items else (self.items - self.done) / rate if rate else None


class WritingPace(Pace):
    """Turns, which are written one after the other once they are prepared.

    Many are prepared before the first is written. The rate is therefore measured from the first write on: the time
    until then says nothing about the time between two writes.
    """

    def __init__(self, items: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        super().__init__(items, done, clock)
        self._first: tuple[float, int] | None = None  # when the first write ended, and how many were done then

    def restart(self) -> None:
        """See :meth:`Pace.restart`."""
        super().restart()
        self._first = None

    def wrote(self, turns: int, seconds: float) -> None:
        """Count turns, the writing of which took these seconds."""
        now = self._clock()
        self.done += turns
        self._begun = now - seconds if self._begun is None else self._begun
        self._first = self._first or (now, self.done)

    def seconds_left(self) -> float | None:
        """See :meth:`Pace.seconds_left`."""
        if self._first is None or self.done == self._first[1]:
            return super().seconds_left()
        moment, done = self._first
        return (self._clock() - moment) / (self.done - done) * (self.items - self.done)


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
