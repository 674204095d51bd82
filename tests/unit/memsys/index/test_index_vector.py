"""The dense index: exact, stable order, cheap replacement."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.running.composed import make_plan
from eval.running.plan import identity_of
from memsys.errors import ConfigError
from memsys.index.approximate import ApproximateCandidates
from memsys.index.bounds import SimilarityBounds
from memsys.index.settings import IndexSettings, chosen_index, using_index
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


def related_rows(count: int, dimension: int, seed: int) -> np.ndarray:
    """Unit vectors around a few centres, from equal to unrelated, some of them sparse."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, dimension)) * (rng.random((5, dimension)) < rng.choice([0.02, 1.0], size=(5, 1)))
    centres[:, 0] += 0.1
    rows = centres[rng.integers(5, size=count)] + rng.normal(size=(count, dimension)) * rng.choice(
        [0.0, 1e-4, 0.1, 0.5, 3.0], size=(count, 1)
    )
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400),
    st.sampled_from([8, 100, 384]),
    st.sampled_from([0.5, 0.85, 0.92, 0.999999, 1.0]),
    st.integers(1, 9),
    st.integers(0, 10**6),
)
def test_a_search_from_a_cosine_on_is_the_first_part_of_the_search(
    count: int, dimension: int, least: float, k: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memsys.index.vector._FEW", 2)
        rows, rng = related_rows(count, dimension, seed), np.random.default_rng(seed)
        index = filled(rows[: count // 2])
        index.search(rows[0], k, least=least)  # what follows are changes after the bounds were made
        index.add([f"n{row}" for row in range(count // 2, count)], rows[count // 2 :])
        changed = [f"n{row}" for row in rng.choice(count, size=count // 3, replace=False).tolist()]
        index.replace(changed, related_rows(len(changed), dimension, seed))
        index.remove([f"n{row}" for row in rng.choice(count, size=count // 4, replace=False).tolist()])
        for query in rows[:: max(count // 5, 1)]:
            # Of two that are equal once rounded the older comes first, though only the younger may reach the bound.
            whole = [pair for pair in index.search(query, count) if pair[1] >= least - 1e-6]
            assert index.search(query, k, least=least) == whole[:k]


def test_a_search_from_a_high_cosine_on_looks_at_few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = unit_rows(2000, 384)
    index, looked = filled(rows), []
    exact = VectorIndex._exact
    monkeypatch.setattr(
        VectorIndex, "_exact", lambda self, rows, query: looked.append(len(rows)) or exact(self, rows, query)
    )
    monkeypatch.setattr(VectorIndex, "_candidates", lambda *_: pytest.fail("searched among all"))
    assert index.search(rows[7], 5, least=0.92) == [("n7", pytest.approx(1.0))]
    assert looked[0] < 50


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.floats(0.9, 1.1), st.sampled_from([0.5, 0.999999, 1.0, 1.05]), st.integers(0, 10**6))
def test_no_cosine_exceeds_one_where_the_lengths_forbid_it(count: int, length: float, cosine: float, seed: int) -> None:
    """Vectors that are a little too long or too short, added, replaced and removed."""
    rng = np.random.default_rng(seed)
    rows = (unit_rows(count, seed=seed) * rng.choice([1.0, length, 1 + 6e-7], size=(count, 1))).astype(np.float32)
    index = filled(rows[: count // 2 + 1])
    index.may_exceed(rows[0], cosine)
    index.add([f"n{row}" for row in range(count // 2 + 1, count)], rows[count // 2 + 1 :])
    index.replace(["n0"], rows[count - 1 :])
    index.remove([f"n{row}" for row in rng.choice(count, size=count // 3, replace=False).tolist()])
    for query in rows:
        highest = max([round(score, 6) for _, score in index.search(query, 1)], default=-1.0)
        assert index.may_exceed(query, cosine) or highest <= cosine


def test_unit_vectors_need_no_search_for_more_than_one() -> None:
    index = filled(unit_rows(50, 384))
    assert not any(index.may_exceed(row, 1.0) for row in unit_rows(50, 384))
    assert index.may_exceed(unit_rows(1, 384)[0], 0.99) and not VectorIndex(8).may_exceed(unit_rows(1)[0], 0.0)


@pytest.mark.parametrize("dimension", [1, 8, 95, 96, 384, 1024])
def test_the_directions_of_the_bounds_are_orthonormal(dimension: int) -> None:
    directions = SimilarityBounds(dimension)._directions
    assert directions.shape == (min(dimension, 95), dimension)
    assert np.allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 300), st.integers(1, 20), st.integers(0, 99), st.booleans())
def test_many_ties_at_the_last_place_are_all_compared(count: int, k: int, seed: int, some: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(4, seed=seed)[rng.integers(4, size=count)]
    index = filled(rows)
    gone = set(rng.choice(count, size=count // 3, replace=False).tolist()) if seed % 2 else set()
    index.remove([f"n{row}" for row in gone])
    left = [row for row in range(count) if row not in gone]
    places = np.arange(0, len(left), 2) if some else np.arange(len(left))
    scores = np.round(rows.astype(np.float64) @ rows[0].astype(np.float64), 6)
    expected = sorted((left[place] for place in places), key=lambda row: (-scores[row], row))[:k]
    found = index.search(rows[0], k, among=places if some else None)
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


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 120), st.lists(st.integers(0, 10**6), max_size=90), st.integers(1, 30), st.integers(0, 9))
def test_an_index_with_gaps_is_the_index_of_what_is_left(count: int, removals: list[int], k: int, seed: int) -> None:
    rows = unit_rows(count + len(removals), seed=seed)
    index, left = filled(rows[:count]), {f"n{row}": rows[row] for row in range(count)}
    for number, drawn in enumerate(removals):
        if left:
            gone = list(left)[drawn % len(left)]
            index.remove([gone])
            del left[gone]
        if drawn % 3 == 0:  # a removed one may come again, as the youngest
            name = gone if drawn % 2 and gone not in left else f"m{number}"
            index.add([name], rows[count + number : count + number + 1])
            left[name] = rows[count + number]
    plain = VectorIndex(8)
    plain.add(list(left), np.array(list(left.values()), dtype=np.float32).reshape(len(left), 8))
    query = -np.abs(unit_rows(1, seed=seed + 50)[0]) if seed % 2 else unit_rows(1, seed=seed + 50)[0]
    among = np.arange(0, len(left), 2)
    assert (index.ids, len(index)) == (plain.ids, len(left))
    assert [index.position(name) for name in left] == list(range(len(left)))
    assert index.search(query, k) == plain.search(query, k)
    assert index.search(query, k, among=among) == plain.search(query, k, among=among)
    assert np.allclose(index.products(query), plain.products(query), atol=1e-6)
    assert np.array_equal(index.state()["vectors"], plain.state()["vectors"])
    assert not any(name in index for name in {f"n{row}" for row in range(count)} - set(left))


def test_a_removal_does_not_move_the_rows_behind_it() -> None:
    index = filled(unit_rows(400))
    rows = {item: index._row_of[item] for item in index.ids}
    for number in range(80):
        index.remove([f"n{3 * number}"])
        moved = sum(index._row_of[item] != rows[item] for item in index.ids)
        assert moved == 0 or number > 40, "rows move up once there are many gaps"
    assert len(index._gaps) < 80 and index.search(unit_rows(400)[1], 1)[0][0] == "n1"


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
        IndexSettings(device="tpu")  # type: ignore[arg-type]


def test_a_cpu_build_of_faiss_refuses_the_gpu_and_names_the_extra() -> None:
    import faiss

    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus():
        index = VectorIndex(8, settings=IndexSettings(device="cuda"))
        rows = unit_rows(40)
        index.add([f"n{row}" for row in range(40)], rows)
        assert index.search(rows[3], 5) == filled(rows).search(rows[3], 5)
    else:
        with pytest.raises(ConfigError, match=r"memsys\[gpu\]"):
            VectorIndex(8, settings=IndexSettings(device="cuda"))


def approximate(kind: str, vectors: np.ndarray) -> VectorIndex:
    settings = IndexSettings(kind=kind, exact_below=50, lists=8, probes=8)  # type: ignore[arg-type]
    index = VectorIndex(vectors.shape[1], settings=settings)
    index.add([f"n{row}" for row in range(len(vectors))], vectors)
    return index


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_approximate_indexes_find_the_same_where_they_look_everywhere(kind: str) -> None:
    """All cells probed, or a graph of 300 searched 128 deep; after additions, replacements and a removal too."""
    rows = unit_rows(300)
    index, exact, query = approximate(kind, rows[:200]), filled(rows[:200]), unit_rows(1, seed=9)[0]
    assert index.search(query, 5) == exact.search(query, 5)
    for each in (index, exact):
        each.add([f"n{row}" for row in range(200, 300)], rows[200:])
        each.replace(["n7"], query[None])
    assert index.search(query, 5) == exact.search(query, 5)
    assert index.search(query, 1)[0][0] == "n7"
    for each in (index, exact):
        each.remove(["n7", "n250"])
    assert index.search(query, 5) == exact.search(query, 5)
    among = np.arange(0, 290, 3)
    assert index.search(query, 5, among=among) == exact.search(query, 5, among=among)
    again = VectorIndex(8, settings=IndexSettings(kind=kind, exact_below=50, lists=8, probes=8))  # type: ignore[arg-type]
    again.load_state(index.state())
    assert again.search(query, 5) == exact.search(query, 5)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["add", "replace", "remove", "search"]), st.integers(0, 10**6)), max_size=60),
    st.integers(0, 99),
)
def test_an_index_of_cells_follows_every_change(changes: list[tuple[str, int]], seed: int) -> None:
    rows = unit_rows(90 + len(changes), seed=seed)
    index, exact = approximate("ivf", rows[:90]), filled(rows[:90])
    for number, (change, drawn) in enumerate(changes):
        new = rows[90 + number : 91 + number]
        some = [exact.ids[place % len(exact)] for place in (drawn, drawn // 7, drawn)]
        for each in (index, exact):
            if change == "add":
                each.add([f"m{number}"], new)
            elif change == "replace":
                each.replace(some, np.repeat(new, 3, axis=0))
            elif change == "remove" and len(each) > 10:
                each.remove(sorted(set(some)))
        if change == "search":
            assert index.search(new[0], 4) == exact.search(new[0], 4)
    assert index.search(rows[0], 7) == exact.search(rows[0], 7)


def test_a_removal_leaves_the_cells_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made again with every removal, an index of a million took seconds for each."""
    rows = unit_rows(300)
    index = approximate("ivf", rows)
    index.search(rows[0], 3)
    monkeypatch.setattr(ApproximateCandidates, "_make", lambda *_: pytest.fail("made again"))
    index.remove(["n0", "n5"])
    index.replace(["n7"], rows[5:6])
    assert index.search(rows[5], 1)[0][0] == "n7" and index.search(rows[0], 1)[0][0] != "n0"


def test_the_choice_holds_inside_and_is_exact_outside() -> None:
    with using_index(IndexSettings(kind="ivf")):
        assert chosen_index().kind == "ivf"
        assert VectorIndex(2)._approximate is not None
    assert chosen_index().kind == "flat"
    assert VectorIndex(2)._approximate is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "tree"}, "index.kind='tree' is unknown; choose one of flat, hnsw, ivf"),
        ({"probes": 0}, "index.probes=0 must be a whole number from 1"),
        ({"kind": "ivf", "exact_below": 10}, "index.exact_below=10 must be at least index.lists=256"),
    ],
)
def test_bad_index_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        IndexSettings(**settings)


def test_a_run_with_the_exact_index_is_the_run_that_it_was() -> None:
    """The choice is not part of a run's settings where it is the exact one."""
    config_dir = str(Path(__file__).resolve().parents[4] / "conf")
    with initialize_config_dir(config_dir, version_base="1.3"):
        exact, hnsw = make_plan(compose("config")), make_plan(compose("config", overrides=["index.kind=hnsw"]))
        on_gpu = make_plan(compose("config", overrides=["index.device=cuda"]))
    assert "index" not in identity_of(exact, "x")
    assert identity_of(on_gpu, "x") == identity_of(exact, "x") and on_gpu.settings["index"]["device"] == "cuda"
    assert "device" not in identity_of(hnsw, "x")["index"]
    assert identity_of(hnsw, "x")["index"]["kind"] == hnsw.index.kind == "hnsw"


def test_a_graph_made_at_once_is_the_graph_that_grew() -> None:
    """A run adds vectors one by one; a resumed one adds all stored ones at once, and must find the same."""
    rows, few = unit_rows(600), {"neighbours": 4, "build_depth": 8, "search_depth": 4, "exact_below": 50}
    grown, resumed = (VectorIndex(8, settings=IndexSettings(kind="hnsw", **few)) for _ in range(2))
    grown.add([f"n{row}" for row in range(60)], rows[:60])
    for number in range(60, 600):
        grown.search(rows[0], 1)  # makes the graph, which then grows
        grown.add([f"n{number}"], rows[number : number + 1])
    resumed.load_state(grown.state())
    queries = unit_rows(40, seed=3)
    assert [resumed.search(query, 5) for query in queries] == [grown.search(query, 5) for query in queries]
