"""Clocks that stop while what they time waits for the embedder's model to be loaded.

A run starts to work as soon as its backbone is there, while the embedder's model may still be loading. What waits for
the model must not have the loading in its seconds.
"""

import time
from asyncio import shield, wrap_future
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

from memsys.embedding.contract import Embedder, KeepsVectors, Vectors
from memsys.embedding.wrapping import WrappedEmbedder

Clock = Callable[[], float]

#: The operation that the current task belongs to; ``None`` outside of any.
_operation: ContextVar["Stopwatch | None"] = ContextVar("_operation", default=None)


class ConversationClock:
    """Seconds since it was made, without those in which all operations under way waited for the model.

    Args:
        clock: seconds from any beginning.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self._begun = clock()
        self._under_way = self._waiting = 0
        self._stood = 0.0
        self._stopped_since: float | None = None

    def seconds(self) -> float:
        """Return the seconds so far."""
        now = self.clock()
        pause = 0.0 if self._stopped_since is None else now - self._stopped_since
        return now - self._begun - self._stood - pause

    def count(self, *, under_way: int = 0, waiting: int = 0) -> None:
        """Add to the operations under way and to those of them that wait; the clock stops while the two are equal."""
        self._under_way += under_way
        self._waiting += waiting
        stopped = 0 < self._under_way == self._waiting
        if stopped and self._stopped_since is None:
            self._stopped_since = self.clock()
        elif not stopped and self._stopped_since is not None:
            self._stood += self.clock() - self._stopped_since
            self._stopped_since = None

    @contextmanager
    def operation(self) -> Iterator["Stopwatch"]:
        """Time one operation of the conversation: what runs within, in this task or in those it starts."""
        watch = Stopwatch(self)
        token = _operation.set(watch)
        self.count(under_way=1)
        try:
            yield watch
        finally:
            self.count(under_way=-1)
            _operation.reset(token)


class Stopwatch:
    """Seconds of one operation without those in which a part of it waited for the model; made by a clock."""

    def __init__(self, conversation: ConversationClock) -> None:
        self._conversation = conversation
        self._begun = conversation.clock()
        self._waiting = 0
        self._waited = self._waits_since = 0.0

    def seconds(self) -> float:
        """Return the seconds so far without those spent waiting; valid while nothing of the operation waits."""
        return self._conversation.clock() - self._begun - self._waited

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the clock while the block runs; blocks of one operation may overlap."""
        self._waiting += 1
        if self._waiting == 1:
            self._waits_since = self._conversation.clock()
            self._conversation.count(waiting=1)
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += self._conversation.clock() - self._waits_since
                self._conversation.count(waiting=-1)


class LoadingEmbedder(WrappedEmbedder):
    """An embedder whose model is being loaded: texts that need it wait, and the operation they belong to says so.

    Args:
        embedder: what embeds.
        loaded: done when its model is there, raises what went wrong; ``None`` where it is not loaded yet.
        load: starts to load it, with the first text that needs it.
    """

    def __init__(self, embedder: Embedder, loaded: "Future[float] | None", load: "Callable[[], Future[float]]") -> None:
        super().__init__(embedder)
        self._loaded, self._load = loaded, load

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts once the model is there; see :class:`memsys.embedding.contract.Embedder`."""
        if self._loaded is None or not self._loaded.done():
            await self._wait(texts)
        return await super().embed(texts)

    async def _wait(self, texts: Sequence[str]) -> None:
        if isinstance(self._embedder, KeepsVectors) and self._embedder.knows(texts):
            return
        if self._loaded is None:
            self._loaded = self._load()
        watch = _operation.get()
        # shield: one cancelled caller must not cancel the loading
        loaded = shield(wrap_future(self._loaded))
        if watch is None:
            await loaded
            return
        with watch.waiting():
            await loaded
