"""Micro-batching with a fake encoder, and the hashing embedder."""

import asyncio
import gc
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.embedding.batching import BatchingEmbedder, VectorCache
from memsys.embedding.contract import Vectors
from memsys.embedding.hashing import HashingConfig, HashingEmbedder
from memsys.errors import ConfigError


class FakeEncoder:
    """Vector of a text: its length and 1, normalised. Records the batches it was given."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self._seconds = seconds

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        time.sleep(self._seconds)
        if "broken" in texts:
            raise ValueError("cannot encode this")
        raw = np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
        return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def embedder_over(encoder: FakeEncoder, max_batch: int = 4, cache_entries: int = 100) -> BatchingEmbedder:
    return BatchingEmbedder("fake", 2, encoder, max_batch=max_batch, cache_entries=cache_entries)


def test_rows_follow_the_input_and_duplicates_are_encoded_once() -> None:
    encoder = FakeEncoder()
    embedder = embedder_over(encoder)
    vectors = asyncio.run(embedder.embed(["aaa", "b", "aaa"]))
    assert vectors.shape == (3, 2) and vectors.dtype == np.float32
    assert vectors[0].tolist() == vectors[2].tolist()
    assert vectors[0, 0] / vectors[0, 1] == pytest.approx(3)
    assert encoder.batches == [["b", "aaa"]]
    assert embedder.statistics()["reused"] == 1


def test_no_texts_give_an_empty_matrix() -> None:
    assert asyncio.run(embedder_over(FakeEncoder()).embed([])).shape == (0, 2)


def test_concurrent_callers_share_batches_sorted_by_length() -> None:
    encoder = FakeEncoder(seconds=0.02)
    embedder = embedder_over(encoder)

    async def callers() -> list[Vectors]:
        return await asyncio.gather(*(embedder.embed(["x" * n]) for n in (9, 5, 7, 3, 1, 8, 2, 6, 4)))

    vectors = asyncio.run(callers())
    ratios = [row[0, 0] / row[0, 1] for row in vectors]
    assert ratios == pytest.approx([9, 5, 7, 3, 1, 8, 2, 6, 4])
    # the first caller finds the worker idle; the others wait and are cut into batches of at most 4, shortest first
    assert [[len(text) for text in batch] for batch in encoder.batches] == [[9], [1, 2, 3, 4], [5, 6, 7, 8]]
    assert len(encoder.threads) == 1


def test_a_text_under_way_is_not_requested_again() -> None:
    encoder = FakeEncoder(seconds=0.02)
    embedder = embedder_over(encoder)

    async def callers() -> None:
        await asyncio.gather(*(embedder.embed(["same"]) for _ in range(5)))
        await embedder.embed(["same"])

    asyncio.run(callers())
    assert encoder.batches == [["same"]]
    counts = embedder.statistics()
    assert (counts["requested"], counts["reused"], counts["encoded"], counts["batches"]) == (6, 5, 1, 1)


def test_an_error_reaches_its_callers_and_the_worker_lives_on() -> None:
    embedder = embedder_over(FakeEncoder())
    with pytest.raises(ValueError, match="cannot encode"):
        asyncio.run(embedder.embed(["broken"]))
    assert asyncio.run(embedder.embed(["fine"])).shape == (1, 2)


def test_callers_that_are_cancelled_by_anothers_error_leave_nothing_to_report() -> None:
    """asyncio reported an error that nobody fetched, once per caller, after the command's own message."""
    embedder = embedder_over(FakeEncoder(seconds=0.01))
    reported: list[object] = []

    async def callers() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(embedder.embed(["broken"]))

    with pytest.raises(ExceptionGroup):
        asyncio.run(callers())
    gc.collect()
    assert not reported


def test_a_cancelled_caller_does_not_take_the_vector_from_others() -> None:
    embedder = embedder_over(FakeEncoder(seconds=0.05))

    async def callers() -> Vectors:
        first = asyncio.create_task(embedder.embed(["same"]))
        second = asyncio.create_task(embedder.embed(["same"]))
        await asyncio.sleep(0.01)
        first.cancel()
        return await second

    assert asyncio.run(callers()).shape == (1, 2)


def test_several_event_loops_use_one_embedder() -> None:
    encoder = FakeEncoder(seconds=0.005)
    embedder = embedder_over(encoder)
    results: list[Vectors] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(asyncio.run(embedder.embed(["t" * n, "shared"]))))
        for n in range(1, 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(results) == 5
    assert sum("shared" in batch for batch in encoder.batches) == 1


def test_the_cache_is_bounded_and_drops_the_least_recently_used() -> None:
    cache = VectorCache(2)
    one = np.ones(1, dtype=np.float32)
    cache.put("a", one)
    cache.put("b", one)
    assert cache.get("a") is not None
    cache.put("c", one)
    assert len(cache) == 2 and cache.get("b") is None and cache.get("a") is not None


def test_what_a_caller_does_to_its_vectors_stays_with_it() -> None:
    embedder = embedder_over(FakeEncoder())
    asyncio.run(embedder.embed(["abc"]))[:] = 0
    assert np.linalg.norm(asyncio.run(embedder.embed(["abc"]))) == pytest.approx(1)


def test_bad_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_batch"):
        embedder_over(FakeEncoder(), max_batch=0)
    with pytest.raises(ConfigError, match="dimension"):
        HashingConfig(name="h", dimension=0)


@given(st.lists(st.text(max_size=30), max_size=5))
def test_hashing_gives_unit_rows_that_depend_on_the_text_alone(texts: list[str]) -> None:
    embedder = HashingEmbedder(16)
    vectors = asyncio.run(embedder.embed(texts))
    assert vectors.shape == (len(texts), 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(asyncio.run(embedder.embed([text]))[0], vector)


def test_hashing_ranks_shared_words_first() -> None:
    vectors = asyncio.run(HashingEmbedder(384).embed(["the red car", "A RED CAR!", "blue boats sail"]))
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_hashing_config_builds() -> None:
    embedder = HashingConfig(name="hashing", dimension=8).build()
    assert (embedder.name, embedder.dimension) == ("hashing", 8)
