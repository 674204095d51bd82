"""Loading a run's models side by side, and what that took."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from eval.running.timing import Clock
from memsys.embedding.contract import Embedder, KeepsVectors, LoadsModel
from memsys.protocol import DeclaresEmbedding, MemoryConfig

BACKBONE, EMBEDDER = "backbone", "embedder"


@dataclass(slots=True)
class Span:
    """When a part began to load and when it was there; ``None`` while it is loading."""

    begun: float
    ended: float | None = None


@dataclass(slots=True)
class Loading:
    """When the parts of a run were loaded.

    Attributes:
        clock: seconds from any beginning; the same that times ingestion.
        spans: by part, ``backbone`` and ``embedder``; one without a model to load has none.
        seconds: what each took, as recorded in ``run.json``; a part that is still loading has none.
    """

    clock: Clock = time.perf_counter
    spans: dict[str, Span] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Note when a part is loaded; a part whose loading fails is not noted as loaded."""
        self._begin(part)
        yield
        self._end(part)

    def start_embedder(self, embedder: Embedder, memory: MemoryConfig) -> "Future[float] | None":
        """Start to load the embedder's model, in its own thread.

        Returns:
            Done when the model is there; ``None`` where the memory never embeds, the embedder has no model to load, or
            vectors of earlier runs are kept, so that it may never be needed.
        """
        if not isinstance(embedder, LoadsModel) or not embeds(memory):
            return None
        if isinstance(embedder, KeepsVectors) and embedder.has_kept():
            return None
        return self.load_embedder(embedder)

    def load_embedder(self, embedder: LoadsModel) -> "Future[float]":
        """Load the embedder's model, in its own thread."""
        self._begin(EMBEDDER)
        loaded = embedder.load()
        loaded.add_done_callback(self._embedder_done)
        return loaded

    def _embedder_done(self, loaded: "Future[float]") -> None:
        if not loaded.cancelled() and loaded.exception() is None:
            self._end(EMBEDDER)

    def _begin(self, part: str) -> None:
        self.spans[part] = Span(self.clock())

    def _end(self, part: str) -> None:
        span = self.spans[part]
        span.ended = self.clock()
        self.seconds[part] = round(span.ended - span.begun, 3)


def embeds(memory: MemoryConfig) -> bool:
    """Return whether a memory may embed a text; true if it does not say."""
    return memory.embeds if isinstance(memory, DeclaresEmbedding) else True


async def report_when_loaded(loaded: "Future[float]", report: Callable[[float], None]) -> None:
    """Call ``report`` with the seconds of the loading once it is done.

    Raises:
        MemsysError: the model cannot be loaded.
    """
    report(await asyncio.shield(asyncio.wrap_future(loaded)))
