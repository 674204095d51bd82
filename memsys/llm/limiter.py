"""Slots for requests, handed out by phase: what others wait for goes first.

A write holds up every later write of its conversation, a prepared note only itself. So writes and consolidations come
before questions, and questions before preparation; within a phase, first come, first served.

Where a holder finds that the backbone takes no call at all (no credit, a refused key), calls that wait or that begin
within the next seconds fail with the same error and are not sent: by then a run has ended. A program that continues, as
the proxy does, tries again later.
"""

import asyncio
import heapq
from collections.abc import Coroutine, Mapping
from time import perf_counter
from typing import NamedTuple

from memsys.errors import BackboneUnusableError, first_error

#: Smaller goes first.
PRIORITY: Mapping[str, int] = {
    "write": 0, "consolidate": 0, "retrieve": 1, "answer": 1, "judge": 1, "warm_up": 1, "prepare": 2,
}  # fmt: skip
#: Seconds after such an error during which no slot is given.
_UNUSABLE_SECONDS = 5.0


class _Slot(NamedTuple):
    """A place in a ``with`` block that holds a slot; made by :meth:`Limiter.slot`."""

    limiter: "Limiter"
    priority: int

    def __aenter__(self) -> Coroutine[None, None, float]:
        return self.limiter.acquire(self.priority)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.limiter.release(error)


class Limiter:
    """A semaphore whose waiters have priorities. Belongs to one event loop.

    Args:
        slots: how many may hold a slot at once.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0
        self._unusable: tuple[float, BackboneUnusableError] | None = None
        self.held = 0

    def slot(self, phase: str) -> "_Slot":
        """Return what holds a slot for the length of an ``async with``, which gives the seconds it was waited for.

        Raises:
            BackboneUnusableError: raised by a holder meanwhile, or just before.
        """
        return _Slot(self, PRIORITY[phase])

    async def acquire(self, priority: int) -> float:
        """Take a slot; returns the seconds it was waited for."""
        if self._unusable and asyncio.get_running_loop().time() - self._unusable[0] < _UNUSABLE_SECONDS:
            raise BackboneUnusableError(str(self._unusable[1]))
        waited = 0.0
        if self._free:
            self._free -= 1
        else:
            waited = await self._turn(priority)
        self.held += 1
        return waited

    def release(self, error: BaseException | None) -> None:
        """Give the slot to the next.

        Args:
            error: with which the holder ends.
        """
        if isinstance(error, BackboneUnusableError | ExceptionGroup):
            found = first_error(error)
            if isinstance(found, BackboneUnusableError):
                self._unusable = (asyncio.get_running_loop().time(), found)
                self._fail_waiters(found)
        self.held -= 1
        self._release()

    async def _turn(self, priority: int) -> float:
        """Wait for a slot that another holder gives back."""
        begun = perf_counter()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiters, (priority, self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # ours already: pass it on
                self._release()
            raise
        return perf_counter() - begun

    def _fail_waiters(self, error: BackboneUnusableError) -> None:
        for _, _, turn in self._waiters:
            if not turn.done():
                turn.set_exception(BackboneUnusableError(str(error)))
        self._waiters.clear()

    def _release(self) -> None:
        """Give the slot to the first waiter that still waits."""
        while self._waiters:
            turn = heapq.heappop(self._waiters)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
