"""Vectors kept on disk: what is written is read to the bit, and damage costs no more than embedding again."""

import asyncio
import errno
import resource
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.embedding.batching import BatchingEmbedder
from memsys.embedding.contract import Vectors
from memsys.embedding.store import VectorStore, fingerprint

ROW = 16 + 3 * 4 + 8


def vector(seed: int) -> Vectors:
    return np.random.default_rng(seed).normal(size=3).astype(np.float32)


def filled(folder: Path, *texts: str) -> VectorStore:
    store = VectorStore(folder, 3)
    store.put(texts, np.stack([vector(number) for number in range(len(texts))]))
    return store


class Encoder:
    """Counts what it encodes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.stack([vector(len(text)) for text in texts])


def embedder(encoder: Encoder, folder: Path) -> BatchingEmbedder:
    made = BatchingEmbedder("fake", 3, encoder, max_batch=2, cache_entries=100)
    made._keep_in(folder)
    return made


def test_a_folder_of_more_files_than_may_be_open_is_read(tmp_path: Path) -> None:
    """Every run that embeds adds a file, and all stayed open: a run ended with a traceback after some thousand runs."""
    for number in range(40):
        filled(tmp_path, f"text {number}")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, limit[1]))
    try:
        store = VectorStore(tmp_path, 3)
        assert all(store.get(f"text {number}") is not None for number in range(40))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_a_file_that_was_removed_since_is_no_vector(tmp_path: Path) -> None:
    filled(tmp_path, "text")
    store = VectorStore(tmp_path, 3)
    next(tmp_path.glob("*.vectors")).unlink()
    assert store.get("text") is None


@given(st.dictionaries(st.text(st.characters()), st.integers(0, 99), min_size=1))
def test_what_is_kept_is_read_to_the_bit(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, int]) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    vectors = np.stack([vector(seed) for seed in texts.values()])
    writing = VectorStore(folder, 3)
    half = len(texts) // 2
    writing.put(list(texts)[:half], vectors[:half])
    assert all(writing.get(text) is not None for text in list(texts)[:half])
    writing.put(list(texts)[half:], vectors[half:])
    for store in (writing, VectorStore(folder, 3)):
        assert len(store) == len(texts)
        for text, kept in zip(texts, vectors, strict=True):
            found = store.get(text)
            assert text in store and found is not None and found.tobytes() == kept.tobytes()


def test_a_row_that_was_cut_is_left_out_and_an_altered_one_is_found(tmp_path: Path) -> None:
    filled(tmp_path, "a", "b", "c")
    (file,) = tmp_path.glob("*.vectors")
    data = bytearray(file.read_bytes())
    data[ROW + 20] ^= 1  # in the vector of b
    file.write_bytes(data[:-1])
    store = VectorStore(tmp_path, 3)
    assert "c" not in store and len(store) == 2
    assert store.get("b") is None and store.corrupt == 1 and "b" not in store
    found = store.get("a")
    assert found is not None and found.tobytes() == vector(0).tobytes()


def test_two_writers_have_a_file_each_and_the_last_row_of_a_text_is_read(tmp_path: Path) -> None:
    first, second = VectorStore(tmp_path, 3), VectorStore(tmp_path, 3)
    first.put(["a"], vector(1)[None])
    second.put(["a"], vector(2)[None])
    assert len(list(tmp_path.glob("*.vectors"))) == 2
    found = VectorStore(tmp_path, 3).get("a")
    assert found is not None and found.tobytes() == vector(2).tobytes()


def test_a_full_disk_ends_the_keeping_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = filled(tmp_path, "a")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        store.put(["b"], vector(7)[None])
    store.put(["c"], vector(8)[None])
    assert [text for text in "abc" if text in store] == ["a"] and store.get("a") is not None
    assert len(VectorStore(tmp_path, 3)) == 1
    assert caplog.messages == [f"vectors are no longer kept in {tmp_path}: No space left on device"]


def test_a_partly_written_row_is_the_last_of_its_file(tmp_path: Path) -> None:
    """A file may not grow beyond a row and a half, as on a disk that fills up between two rows."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = VectorStore(tmp_path, 3)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROW + ROW // 2, before[1]))
    try:
        store.put(["a", "b"], np.stack([vector(0), vector(1)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    store.put(["c"], vector(2)[None])
    kept = VectorStore(tmp_path, 3)
    assert "a" in kept and len(kept) == 1 and len(store) == 0


def test_an_embedder_encodes_only_what_is_not_kept(tmp_path: Path) -> None:
    before, after = Encoder(), Encoder()
    texts = ["a", "bb", "ccc", "dddd", "bb"]
    first = asyncio.run(embedder(before, tmp_path).embed(texts[:3]))
    again = embedder(after, tmp_path)
    assert again.has_kept() and again.knows(texts[:3]) and not again.knows(texts)
    second = asyncio.run(again.embed(texts))
    assert after.texts == ["dddd"] and second[:3].tobytes() == first.tobytes()
    counts = again.statistics()
    assert (counts["requested"], counts["reused"], counts["kept"], counts["encoded"]) == (5, 1, 3, 1)
    assert again.knows(texts)


def test_an_altered_row_is_embedded_again_and_kept_anew(tmp_path: Path) -> None:
    asyncio.run(embedder(Encoder(), tmp_path).embed(["a"]))
    (file,) = tmp_path.glob("*.vectors")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    encoder = Encoder()
    again = embedder(encoder, tmp_path)
    assert asyncio.run(again.embed(["a"]))[0].tobytes() == vector(1).tobytes()
    assert encoder.texts == ["a"]
    assert VectorStore(tmp_path, 3).get("a") is not None


def test_the_folder_is_named_by_all_that_can_change_a_vector(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text("{}", encoding="utf-8")
    names = [fingerprint({"threads": 1}), fingerprint({"threads": 2}), fingerprint({"threads": 1}, tmp_path)]
    (tmp_path / "1_Pooling" / "config.json").write_text('{"mean": true}', encoding="utf-8")
    names.append(fingerprint({"threads": 1}, tmp_path))
    (tmp_path / "README.md").write_text("words", encoding="utf-8")
    assert len(set(names)) == 4 and fingerprint({"threads": 1}, tmp_path) == names[-1]
