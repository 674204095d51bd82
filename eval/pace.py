"""How long work still takes, from measured seconds; nothing of it knows a display."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


class Pace:
    """Time left of items that pass two steps, the first of which may run far ahead of the second.

    Turns are prepared, up to ``schedule.prepare_ahead`` of them early, and then written; questions are retrieved for,
    many at once, and then answered. Counting finished items alone would take the head start of the first step for
    slowness: the share done is therefore that of the work, each step weighed by its mean measured seconds.

    Args:
        items: how many there are.
        done: of these, done before this process began.
        clock: seconds from any beginning.
    """

    def __init__(self, items: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        self._items, self._before = items, done
        self._clock = clock
        self._counts, self._seconds = [done, done], [0.0, 0.0]
        self._begun: float | None = None
        self._work_before, self._done_before = 0.0, done

    @property
    def done(self) -> int:
        """Items that passed both steps."""
        return self._counts[1]

    @property
    def items(self) -> int:
        """Items that there are."""
        return self._items

    def begin(self) -> None:
        """Measure from here on if work has begun; what is already done does not count for the rate."""
        if self._begun is not None:
            self._begun = self._clock()
            self._work_before = sum(self._seconds)
            self._done_before = self.done

    def skip(self, items: int) -> None:
        """Count items that were found done."""
        self._counts = [count + items for count in self._counts]
        self._before += items
        self._done_before += items

    def passed(self, step: int, items: int, seconds: float) -> None:
        """Count items that passed a step (0 or 1), which took these seconds."""
        if self._begun is None:
            self._begun = self._clock() - seconds
        self._counts[step] += items
        self._seconds[step] += seconds

    def rate(self) -> float | None:
        """Items a second that passed both steps; ``None`` before the first."""
        spent = 0.0 if self._begun is None else self._clock() - self._begun
        return (self.done - self._done_before) / spent if spent > 0 and self.done > self._done_before else None

    def seconds_left(self) -> float | None:
        """Seconds until all items are done; ``None`` before the first has passed both steps."""
        if self.done >= self._items:
            return 0.0
        done = sum(self._seconds) - self._work_before
        if self._begun is None or self.done == self._before or done <= 0:
            return None
        spent = self._clock() - self._begun
        left = sum(map(self._work_left, (0, 1)))
        return spent * left / done

    def _work_left(self, step: int) -> float:
        passed = self._counts[step] - self._before
        return max(self._items - self._counts[step], 0) * self._seconds[step] / passed if passed else 0.0
