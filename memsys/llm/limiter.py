"""Slots for requests, handed out by phase: what others wait for goes first.

A write holds up every later write of its conversation, a prepared note only itself. So writes and consolidations come
before questions, and questions before preparation; within a phase, first come, first served.

Where a holder finds that the backbone takes no call at all (no credit, a refused key), calls that wait or that begin
within the next seconds fail with the same error and are not sent: by then a run has ended. A program that goes on, as
the proxy does, tries again later.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter

from memsys.errors import BackboneUnusableError, first_error

#: Smaller goes first.
PRIORITY: Mapping[str, int] = {
    "write": 0, "consolidate": 0, "retrieve": 1, "answer": 1, "judge": 1, "warm_up": 1, "prepare": 2,
}  # fmt: skip
#: Seconds after such an error for which nobody gets a slot.
_UNUSABLE_SECONDS = 5.0


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

    @asynccontextmanager
    async def slot(self, phase: str) -> AsyncIterator[float]:
        """Hold a slot; yields the seconds it was waited for.

        Raises:
            BackboneUnusableError: raised by a holder meanwhile, or just before.
        """
        waited = await self._acquire(PRIORITY[phase])
        self.held += 1
        try:
            yield waited
        except (BackboneUnusableError, ExceptionGroup) as error:
            found = first_error(error)
            if isinstance(found, BackboneUnusableError):
                self._unusable = (asyncio.get_running_loop().time(), found)
                self._fail_waiters(found)
            raise
        finally:
            self.held -= 1
            self._release()

    async def _acquire(self, priority: int) -> float:
        if self._unusable and asyncio.get_running_loop().time() - self._unusable[0] < _UNUSABLE_SECONDS:
            raise BackboneUnusableError(str(self._unusable[1]))
        if self._free:
            self._free -= 1
            return 0.0
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
