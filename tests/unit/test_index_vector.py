"""The dense index: exact, stable order, cheap replacement."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.errors import ConfigError
from memsys.index.vector import VectorIndex


def unit_rows(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(vectors: np.ndarray) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.add([f"n{row}" for row in range(len(vectors))], vectors)
    return index


def test_search_gives_cosines_best_first() -> None:
    index = VectorIndex(2)
    index.add(["east", "north", "northeast"], np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
    found = index.search(np.array([1, 0], dtype=np.float32), 2)
    assert [item for item, _ in found] == ["east", "northeast"]
    assert [score for _, score in found] == pytest.approx([1.0, 0.6])


def test_an_empty_index_and_k_0_find_nothing() -> None:
    index = VectorIndex(2)
    assert index.search(np.array([1, 0], dtype=np.float32), 5) == []
    index.add([], np.zeros((0, 2), dtype=np.float32))
    index.add(["a"], np.array([[1, 0]], dtype=np.float32))
    assert index.search(np.array([1, 0], dtype=np.float32), 0) == []
    assert len(index.search(np.array([1, 0], dtype=np.float32), 5)) == 1


def test_ties_go_to_the_older_item_even_at_the_cut() -> None:
    row = unit_rows(1)[0]
    index = filled(np.tile(row, (200, 1)))
    assert [item for item, _ in index.search(row, 3)] == ["n0", "n1", "n2"]


def test_scores_that_differ_in_the_seventh_decimal_are_ties() -> None:
    index = VectorIndex(2)
    angle = 3e-4  # 1 - cos = 4.5e-8
    index.add(["old", "new"], np.array([[np.cos(angle), np.sin(angle)], [1, 0]], dtype=np.float32))
    assert [item for item, _ in index.search(np.array([1, 0], dtype=np.float32), 2)] == ["old", "new"]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 5))
def test_search_equals_brute_force(count: int, k: int, seed: int) -> None:
    rows = unit_rows(count, seed=seed)
    rows[count // 2] = rows[0]
    query = unit_rows(1, seed=seed + 100)[0]
    scores = np.round(rows.astype(np.float64) @ query.astype(np.float64), 6)
    expected = sorted(range(count), key=lambda row: (-scores[row], row))[:k]
    assert [item for item, _ in filled(rows).search(query, k)] == [f"n{row}" for row in expected]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 20), st.sets(st.integers(0, 59)), st.integers(0, 5))
def test_search_among_some_equals_brute_force(count: int, k: int, chosen: set[int], seed: int) -> None:
    rows = unit_rows(count, seed=seed)
    rows[count // 2] = rows[0]
    query = unit_rows(1, seed=seed + 100)[0]
    allowed = sorted(row for row in chosen if row < count)
    scores = np.round(rows.astype(np.float64) @ query.astype(np.float64), 6)
    expected = sorted(allowed, key=lambda row: (-scores[row], row))[:k]
    found = filled(rows).search(query, k, among=np.array(allowed, dtype=np.int64))
    assert [item for item, _ in found] == [f"n{row}" for row in expected]


def test_replace_keeps_the_place_in_the_order() -> None:
    rows = unit_rows(5)
    index = filled(rows)
    index.replace(["n3"], rows[1:2])
    assert [item for item, _ in index.search(rows[1], 2)] == ["n1", "n3"]
    assert index.ids == ("n0", "n1", "n2", "n3", "n4")
    assert np.array_equal(index.vectors(["n3", "n0"]), rows[[1, 0]])


def test_remove_keeps_the_order_of_the_rest() -> None:
    rows = unit_rows(6)
    index = filled(rows)
    index.remove(["n4", "n1"])
    assert index.ids == ("n0", "n2", "n3", "n5") and len(index) == 4 and index.position("n3") == 2
    assert "n1" not in index and "n2" in index
    assert index.search(rows[5], 1)[0][0] == "n5"
    index.add(["n1"], rows[1:2])
    assert index.search(rows[1], 1)[0][0] == "n1" and index.ids[-1] == "n1"


def test_cosines_equal_those_of_a_search() -> None:
    rows = unit_rows(30)
    index = filled(rows)
    found = index.search(rows[4], 30)
    assert index.cosines([item for item, _ in found], rows[4]).tolist() == [score for _, score in found]
    assert index.cosines([], rows[4]).shape == (0,)


def test_vectors_are_copies() -> None:
    index = filled(unit_rows(3))
    index.vectors(["n0"])[:] = 0
    assert np.linalg.norm(index.vectors(["n0"])) == pytest.approx(1)


def test_state_round_trip() -> None:
    rows = unit_rows(7)
    index = filled(rows)
    state = index.state()
    index.replace(["n0"], rows[6:7])
    index.remove(["n2"])
    other = VectorIndex(8)
    other.add(["stale"], rows[:1])
    other.load_state(state)
    assert other.ids == tuple(f"n{row}" for row in range(7))
    assert other.search(rows[0], 3) == filled(rows).search(rows[0], 3)


def test_an_empty_state_round_trips() -> None:
    other = filled(unit_rows(2))
    other.load_state(VectorIndex(8).state())
    assert len(other) == 0


def test_misuse_is_refused() -> None:
    index = filled(unit_rows(2))
    with pytest.raises(ValueError, match="twice"):
        index.add(["n0"], unit_rows(1))
    with pytest.raises(ValueError, match="twice"):
        index.add(["x", "x"], unit_rows(2))
    with pytest.raises(ValueError, match="need vectors"):
        index.add(["x"], unit_rows(1, dimension=3))
    with pytest.raises(KeyError):
        index.replace(["x"], unit_rows(1))
    with pytest.raises(ConfigError, match="tpu"):
        VectorIndex(2, device="tpu")  # type: ignore[arg-type]


def test_a_cpu_build_of_faiss_refuses_the_gpu_and_names_the_extra() -> None:
    import faiss

    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus():
        index = VectorIndex(8, device="gpu")
        rows = unit_rows(40)
        index.add([f"n{row}" for row in range(40)], rows)
        assert index.search(rows[3], 5) == filled(rows).search(rows[3], 5)
    else:
        with pytest.raises(ConfigError, match="faiss-gpu"):
            VectorIndex(8, device="gpu")
