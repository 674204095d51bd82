"""Micro-batching: texts of concurrent callers share one batch, and one text is embedded once.

One worker thread encodes. While it is busy, requests of all callers pile up; the next batch takes them sorted by
length. An idle worker therefore starts at once (no latency is added to a lone query), and a loaded one fills its
batches. Callers may live in different event loops.
"""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.embedding.store import VectorStore
from memsys.errors import ConfigError

Vector = NDArray[np.float32]


class Encoder(Protocol):
    """The blocking model behind a :class:`BatchingEmbedder`; only its worker thread calls it."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode one batch to unit vectors of shape ``(len(texts), dimension)``."""


@dataclass
class EmbeddingCounts:
    """Counts of an embedder's work since it was made.

    Attributes:
        requested: texts asked for.
        reused: of these, answered from the cache or by a request already under way.
        kept: texts whose vector was read from the folder of kept vectors.
        encoded: texts that went through the model.
        batches: calls of the model.
        seconds: time inside the model.
    """

    requested: int = 0
    reused: int = 0
    kept: int = 0
    encoded: int = 0
    batches: int = 0
    seconds: float = 0.0


class VectorCache:
    """The last ``capacity`` vectors by text, least recently used dropped first. Not thread-safe by itself."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def get(self, text: str) -> Vector | None:
        """Return the vector of ``text``, or ``None``."""
        vector = self._vectors.get(text)
        if vector is not None:
            self._vectors.move_to_end(text)
        return vector

    def put(self, text: str, vector: Vector) -> None:
        """Keep a vector."""
        self._vectors[text] = vector
        self._vectors.move_to_end(text)
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)

    def __len__(self) -> int:
        return len(self._vectors)


class BatchingEmbedder:
    """An :class:`~memsys.embedding.contract.Embedder` over a blocking encoder.

    Args:
        name: model name, as recorded in the run.
        dimension: length of a vector.
        encoder: the model.
        max_batch: texts per call of the model.
        cache_entries: vectors kept in memory; 0 keeps none, as latency runs need.
    """

    def __init__(self, name: str, dimension: int, encoder: Encoder, *, max_batch: int, cache_entries: int) -> None:
        for key, value, least in (("max_batch", max_batch, 1), ("cache_entries", cache_entries, 0)):
            if value < least:
                raise ConfigError(f"embedder.{key}={value} must be at least {least}")
        self.counts = EmbeddingCounts()
        self._name = name
        self._dimension = dimension
        self._encoder = encoder
        self._max_batch = max_batch
        self._cache = VectorCache(cache_entries)
        self._store: VectorStore | None = None
        self._lock = threading.Lock()
        #: texts queued but not yet cut into batches; batches cut but not yet started; every text not yet settled
        self._waiting: list[str] = []
        self._batches: deque[Sequence[str]] = deque()
        self._under_way: dict[str, Future[Vector]] = {}
        self._busy = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"embed-{name}")

    @property
    def name(self) -> str:
        """Model name, as recorded in the run."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; see :class:`~memsys.embedding.contract.Embedder`."""
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        found = self._request(texts)
        vectors = {text: await _vector(item) for text, item in found.items()}
        return np.stack([vectors[text] for text in texts])

    def statistics(self) -> Mapping[str, float]:
        """Return the counts since the embedder was made, for the run's record."""
        return asdict(self.counts)

    def knows(self, texts: Sequence[str]) -> bool:
        """See :class:`~memsys.embedding.contract.KeepsVectors`."""
        with self._lock:
            return all(self._cache.get(text) is not None or text in (self._store or ()) for text in texts)

    def has_kept(self) -> bool:
        """See :class:`~memsys.embedding.contract.KeepsVectors`."""
        with self._lock:
            return bool(self._store)

    def _keep_in(self, folder: Path | None) -> None:
        """Keep vectors in a folder that no other embedder writes to; ``None`` to keep nothing."""
        with self._lock:
            self._store = None if folder is None else VectorStore(folder, self._dimension)

    def _request(self, texts: Sequence[str]) -> dict[str, Vector | Future[Vector]]:
        """Find each distinct text in the cache, among those under way, or queue it."""
        found: dict[str, Vector | Future[Vector]] = {}
        with self._lock:
            self.counts.requested += len(texts)
            self.counts.reused += len(texts)
            for text in texts:
                if text not in found:
                    found[text] = self._find_or_queue(text)
            idle = not self._busy
            self._busy = self._busy or bool(self._waiting)
        if idle:
            self._start_batch()
        return found

    def _find_or_queue(self, text: str) -> Vector | Future[Vector]:
        known = self._cache.get(text)
        if known is not None:
            return known
        pending = self._under_way.get(text)
        if pending is None:
            self.counts.reused -= 1
            self._waiting.append(text)
            pending = self._under_way[text] = Future()
        return pending

    def _start_batch(self) -> None:
        """Give the next batch to the worker; if none is left, split all waiting texts into batches first."""
        with self._lock:
            if not self._batches:
                by_length = sorted(self._waiting, key=len)
                self._waiting = []
                starts = range(0, len(by_length), self._max_batch)
                self._batches.extend(by_length[start : start + self._max_batch] for start in starts)
            if not self._batches:
                self._busy = False
                return
            batch = self._batches.popleft()
        try:
            outcome = self._worker.submit(self._encode, batch)
        except RuntimeError as error:  # the interpreter is ending: these have no waiters any longer
            outcome = Future()
            outcome.set_exception(error)
        outcome.add_done_callback(partial(self._finish_batch, batch))

    def _encode(self, batch: Sequence[str]) -> Vectors:
        """Read the kept vectors of one batch and encode the rest (worker thread)."""
        vectors: dict[str, Vector] = {}
        with self._lock:
            store = self._store
            if store is not None:
                vectors = {text: kept for text in batch if (kept := store.get(text)) is not None}
            self.counts.kept += len(vectors)
        missing = [text for text in batch if text not in vectors]
        if missing:
            made = self._made(missing)
            vectors.update(zip(missing, made, strict=True))
            with self._lock:
                if store is not None:
                    store.put(missing, made)
        return np.stack([vectors[text] for text in batch])

    def _made(self, texts: Sequence[str]) -> Vectors:
        """Call the model."""
        started = time.perf_counter()
        vectors = self._encoder.encode(texts)
        if vectors.shape != (len(texts), self._dimension):
            raise ConfigError(f"embedder {self._name} gave {vectors.shape}, not ({len(texts)}, {self._dimension})")
        with self._lock:
            self.counts.encoded += len(texts)
            self.counts.batches += 1
            self.counts.seconds += time.perf_counter() - started
        return vectors

    def _finish_batch(self, batch: Sequence[str], outcome: Future[Vectors]) -> None:
        """Give each caller its vector, or the error, and continue with the next batch."""
        error = outcome.exception()
        for row, text in enumerate(batch):
            with self._lock:
                waiting = self._under_way.pop(text)
                if error is None:
                    self._cache.put(text, outcome.result()[row])
            if error is None:
                waiting.set_result(outcome.result()[row])
            else:
                waiting.set_exception(error)
        self._start_batch()


async def _vector(item: Vector | Future[Vector]) -> Vector:
    if not isinstance(item, Future):
        return item
    # A future of its own: a cancelled caller must not cancel what other callers wait for.
    loop = asyncio.get_running_loop()
    own: asyncio.Future[Vector] = loop.create_future()

    def hand_over(done: Future[Vector]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed: its run has failed or was stopped
            loop.call_soon_threadsafe(_settle, own, done)

    item.add_done_callback(hand_over)
    return await own


def _settle(own: "asyncio.Future[Vector]", done: Future[Vector]) -> None:
    """Copy an outcome, if a waiter is left."""
    if own.done():
        return
    error = done.exception()
    if error is None:
        own.set_result(done.result())
    else:
        own.set_exception(error)
        own.exception()  # or asyncio would log it as never retrieved where the caller was cancelled meanwhile
