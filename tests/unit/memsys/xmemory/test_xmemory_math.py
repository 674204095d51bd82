"""xMemory's formulas against values worked by hand: f(P), kNN graphs, cuttings, greedy representatives."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.xmemory.graph import fact_graph, newest_edges
from memsys.xmemory.objective import Bell, Floats, median, neighbourhood_weights, objective, semantic_score, sparsity
from memsys.xmemory.products import CentroidProducts
from memsys.xmemory.representatives import edge_weights, scaled, select_representatives
from memsys.xmemory.space import ThemePart, ThemeSpace, part_of
from memsys.xmemory.splitting import (
    Cutting,
    along_first_component,
    best,
    components,
    cosines_between,
    distinct,
    linkage_cuttings,
    mean_pairwise,
    ordered,
)
from tests.support.xmemory import unit_rows

BELL = Bell(eps=1e-8, sigma_floor=0.0)


def random_rows(count: int, dimension: int = 6, seed: int = 0) -> Vectors:
    return unit_rows(*np.random.default_rng(seed).standard_normal((count, dimension)))


@pytest.mark.parametrize(
    ("sizes", "score"),
    [([2, 2, 2], 1.0), ([4, 1, 1], 36 / 54), ([12], 1.0), ([11, 1], 144 / 244), ([1] * 7, 1.0), ([3, 1], 16 / 20)],
)
def test_sparsity_of_hand_worked_partitions(sizes: list[int], score: float) -> None:
    assert sparsity(np.array(sizes)) == pytest.approx(score)


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_sparsity_lies_in_0_1_and_is_1_only_for_equal_sizes(sizes: list[int]) -> None:
    score = sparsity(np.array(sizes))
    assert 1 / len(sizes) - 1e-12 <= score <= 1 + 1e-12
    assert (score == pytest.approx(1.0)) == (len(set(sizes)) == 1)
    assert sparsity(np.array(sizes[::-1])) == pytest.approx(score)


def test_sparsity_is_the_even_share_over_the_expected_scan() -> None:
    sizes = np.array([5, 3, 1])
    expected_scan = sum((n / 9) * n for n in sizes)
    assert sparsity(sizes) == pytest.approx((9 / 3) / expected_scan)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12))
def test_the_median_is_numpys(values: list[float]) -> None:
    assert median(np.array(values)) == pytest.approx(float(np.median(values)))


def test_the_bell_at_hand_worked_similarities() -> None:
    weights = neighbourhood_weights(np.array([0.5, 0.6, 0.9]), BELL)
    assert weights == pytest.approx([math.exp(-0.5), 1.0, math.exp(-4.5)], rel=1e-5)
    assert neighbourhood_weights(np.array([0.4, 0.4]), BELL) == pytest.approx([1.0, 1.0])


def test_with_three_themes_the_one_outside_the_closest_pair_scores_nothing_unless_the_width_has_a_floor() -> None:
    nearest = np.array([0.8, 0.8, 0.3])
    assert neighbourhood_weights(nearest, BELL) == pytest.approx([1.0, 1.0, 0.0])
    floored = neighbourhood_weights(nearest, Bell(1e-8, 0.5))
    assert floored == pytest.approx([1.0, 1.0, math.exp(-0.5)])


def test_the_semantic_score_is_the_mean_of_cohesion_times_bell() -> None:
    cohesion, nearest = np.array([0.9, 0.8, 0.5]), np.array([0.5, 0.6, 0.9])
    worked = (0.9 * math.exp(-0.5) + 0.8 * 1.0 + 0.5 * math.exp(-4.5)) / 3
    assert semantic_score(cohesion, nearest, BELL) == pytest.approx(worked, rel=1e-5)
    assert objective(np.array([4, 1, 1]), cohesion, nearest, BELL) == pytest.approx(36 / 54 + worked, rel=1e-5)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_the_bell_lies_in_0_1_and_peaks_at_the_median(values: list[float]) -> None:
    nearest = np.array(values)
    weights = neighbourhood_weights(nearest, BELL)
    assert ((weights >= 0) & (weights <= 1)).all()
    distances = np.abs(nearest - np.median(nearest))
    assert (np.diff(weights[np.argsort(distances)]) <= 1e-12).all()


def test_a_theme_is_the_mean_of_its_facts_and_the_mean_cosine_with_it() -> None:
    part = part_of(unit_rows([1, 0], [0, 1]))
    assert part.direction == pytest.approx([math.sqrt(0.5)] * 2)
    assert (part.size, part.cohesion) == (2, pytest.approx(math.sqrt(0.5)))
    assert part_of(unit_rows([1, 0], [-1, 0])).cohesion == 0.0


def by_definition(parts: list[ThemePart], bell: Bell) -> float:
    """Equations 1 to 3, written out."""
    total, count = sum(part.size for part in parts), len(parts)
    similarities = [
        max((float(a.direction @ b.direction) for j, b in enumerate(parts) if j != i), default=0.0)
        for i, a in enumerate(parts)
    ]
    middle = float(np.median(similarities))
    sigma = float(np.median([abs(s - middle) for s in similarities])) + bell.eps
    semantic = sum(
        part.cohesion * math.exp(-((s - middle) ** 2) / (2 * sigma**2))
        for part, s in zip(parts, similarities, strict=True)
    )
    return total**2 / (count * sum(part.size**2 for part in parts)) + semantic / count


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(0, 5), st.integers(0, 2**16))
def test_a_score_with_themes_replaced_is_the_score_of_that_partition(count: int, removed: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [part_of(random_rows(int(rng.integers(1, 5)), seed=seed + n)) for n in range(count)]
    space = ThemeSpace(6)
    for n, part in enumerate(parts):
        space.put(f"t{n}", part)
    assert space.score(BELL) == pytest.approx(by_definition(parts, BELL), abs=1e-6)
    gone = [f"t{n}" for n in range(min(removed, count))]
    new = [part_of(random_rows(2, seed=seed + 100 + n)) for n in range(2)]
    rest = parts[len(gone) :]
    assert space.score(BELL, without=gone, parts=new) == pytest.approx(by_definition([*rest, *new], BELL), abs=1e-6)
    among = [f"t{n}" for n in range(0, count, 2)]
    some = [part for n, part in enumerate(parts) if n % 2 == 0]
    assert space.score(BELL, among=among) == pytest.approx(by_definition(some, BELL), abs=1e-6)


def test_dropped_and_changed_themes_are_forgotten_everywhere() -> None:
    space = ThemeSpace(2)
    for name, row in (("a", [1, 0]), ("b", [0.9, 0.1]), ("c", [0, 1])):
        space.put(name, part_of(unit_rows(row)))
    assert space.similar("a", -1, None) == ["b", "c"]
    assert space.nearest(unit_rows([1, 0.02])[0]) == ("a", pytest.approx(1.0, abs=1e-3))
    space.drop("b")
    assert (len(space), space.similar("a", -1, None)) == (2, ["c"])
    space.put("c", part_of(unit_rows([1, 0.1])))
    assert space.cosine("a", "c") == pytest.approx(1 / math.sqrt(1.01), abs=1e-6)
    assert space.neighbours(5) == {"a": [("c", space.cosine("a", "c"))], "c": [("a", space.cosine("a", "c"))]}
    empty = ThemeSpace(2)
    assert (empty.nearest(unit_rows([1, 0])[0]), empty.score(BELL)) == (None, 0.0)


@settings(deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 12))
def test_however_often_themes_come_and_go_the_space_is_that_of_those_that_are_there(seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    space, kept = ThemeSpace(3), dict[str, ThemePart]()
    for number in range(rounds):
        for name in list(kept):
            if rng.random() < 0.6:  # many gaps, so that they are closed when room is needed
                space.drop(name)
                del kept[name]
        changed = [name for name in kept if rng.random() < 0.3]
        for name in [*changed, *(f"t{number}.{n}" for n in range(int(rng.integers(1, 25))))]:
            kept[name] = part_of(random_rows(2, 3, int(rng.integers(10**6))))
            space.put(name, kept[name])
    fresh = ThemeSpace(3)
    for name, part in kept.items():
        fresh.put(name, part)
    assert len(space) == len(kept)
    assert space.score(BELL) == fresh.score(BELL)
    assert space.neighbours(3) == fresh.neighbours(3)
    vector = random_rows(1, 3, seed)[0]
    assert space.nearest(vector) == fresh.nearest(vector)


def cosines_with(direction: Floats, parts: Sequence[ThemePart]) -> Floats:
    rows = np.stack([part.direction for part in parts]) if parts else np.zeros((0, len(direction)))
    found: Floats = np.einsum("ij,j->i", rows, direction)
    return found


def plain_score(parts: Sequence[ThemePart], bell: Bell) -> float:
    """``f`` of a partition with all pairs of its themes compared, in double precision."""
    nearest = [
        max([-np.inf, *cosines_with(one.direction, [other for other in parts if other is not one])]) for one in parts
    ]
    finite = np.where(np.isfinite(nearest), nearest, 0.0)
    return objective(np.array([part.size for part in parts]), np.array([part.cohesion for part in parts]), finite, bell)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 160), st.integers(0, 60), st.floats(0, 2), st.integers(0, 2**16))
def test_many_themes_found_in_single_precision_are_those_of_all_pairs_bit_by_bit(
    count: int, changes: int, spread: float, seed: int
) -> None:
    """Above and below the number from which candidates are sought first; few centres give near ties and hubs."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((5, 12))

    def drawn() -> ThemePart:
        rows = centres[int(rng.integers(5))] + spread * rng.standard_normal((int(rng.integers(1, 4)), 12))
        return part_of(unit_rows(*rows))

    space, kept = ThemeSpace(12), {f"t{n}": drawn() for n in range(count)}
    for name, part in kept.items():
        space.put(name, part)
    for number in range(changes):
        name = list(kept)[int(rng.integers(len(kept)))] if kept else f"n{number}"
        if rng.random() < 0.5 and kept:
            space.drop(name)
            del kept[name]
        else:
            kept[name] = drawn()
            space.put(name, kept[name])
    names, parts = list(kept), list(kept.values())
    assert space.score(BELL) == plain_score(parts, BELL)
    new = [drawn(), drawn()]
    gone = names[: len(names) // 3]
    stay = [part for name, part in kept.items() if name not in gone]
    assert space.score(BELL, without=gone, parts=new) == plain_score([*stay, *new], BELL)
    some = [part for name, part in kept.items() if name in names[::2]]
    assert space.score(BELL, among=names[::2]) == plain_score(some, BELL)
    for name in names[:3]:
        cosines = np.round(cosines_with(kept[name].direction, parts), 6)
        order = sorted((n for n in range(len(names)) if names[n] != name), key=lambda n: (-cosines[n], n))
        assert space.similar(name, 0.2, 7) == [names[n] for n in order if cosines[n] >= 0.2][:7]
    vector = random_rows(1, 12, seed)[0]
    wide = vector.astype(np.float64)
    cosines = np.round(cosines_with(wide / np.sqrt(np.einsum("i,i->", wide, wide)), parts), 6)
    best = int(cosines.argmax()) if parts else 0
    assert space.nearest(vector) == ((names[best], float(cosines[best])) if parts else None)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(0, 2), st.integers(0, 2**16))
def test_near_themes_told_from_the_lists_and_products_kept_for_a_new_theme_are_those_of_a_fresh_space(
    count: int, spread: float, seed: int
) -> None:
    """Facts that were compared before they found a theme, others that were not, and themes that go in between."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, 8))
    space, kept = ThemeSpace(8), dict[str, ThemePart]()
    for number in range(count):
        vector = unit_rows(centres[int(rng.integers(4))] + spread * rng.standard_normal(8))
        if rng.random() < 0.8:
            space.nearest(vector[0])
        if rng.random() < 0.2 and kept:
            name = list(kept)[int(rng.integers(len(kept)))]
            space.drop(name)
            del kept[name]
        name = f"t{number}"
        if rng.random() < 0.3 and kept:
            name = list(kept)[int(rng.integers(len(kept)))]
        kept[name] = part_of(vector)
        space.put(name, kept[name])
        names, parts = list(kept), list(kept.values())
        place = names.index(name)
        cosines = np.round(cosines_with(kept[name].direction, parts), 6)
        order = sorted((n for n in range(len(names)) if n != place), key=lambda n: (-cosines[n], n))
        for least in (-1.0, 0.2, 0.6, 0.95):
            for most in (1, 4, 10, None):
                assert space.similar(name, least, most) == [names[n] for n in order if cosines[n] >= least][:most]
    assert space.score(BELL) == plain_score(list(kept.values()), BELL)


def test_a_near_theme_costs_no_pass_over_all_while_the_list_is_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    space = ThemeSpace(64)
    for number, row in enumerate(random_rows(100, 64)):
        space.put(f"t{number}", part_of(row[None]))
    vector = random_rows(1, 64, 9)[0]
    space.nearest(vector)
    monkeypatch.setattr(CentroidProducts, "_computed", lambda *_: pytest.fail("passed over all themes again"))
    space.put("new", part_of(vector[None]))
    assert space.similar("t5", 0.9, 10) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 130), st.floats(0, 2), st.integers(0, 2**16))
def test_a_merger_scored_without_a_pass_over_all_themes_is_scored_as_with_one_bit_by_bit(
    count: int, spread: float, seed: int
) -> None:
    """Neighbours and strangers, equal themes too, among themes of which some went and some changed."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((6, 16))

    def drawn() -> Vectors:
        size = int(rng.choice([1, 1, 2, 9]))
        return unit_rows(*(centres[int(rng.integers(6))] + spread * rng.standard_normal((size, 16))))

    space, facts = ThemeSpace(16), {f"t{n}": drawn() for n in range(count)}
    for name, rows in facts.items():
        space.put(name, part_of(rows))
    for name in list(facts)[: count // 3]:
        if rng.random() < 0.5 and len(facts) > 2:
            space.drop(name)
            del facts[name]
        else:
            facts[name] = drawn()
            space.put(name, part_of(facts[name]))
    parts = {name: part_of(rows) for name, rows in facts.items()}
    one = list(facts)[int(rng.integers(len(facts)))]
    for other in (space.similar(one, -1.0, 4) + [name for name in list(facts)[::20] if name != one])[:8]:
        merged = part_of(np.concatenate([facts[one], facts[other]]))
        rest = [part for name, part in parts.items() if name not in (one, other)]
        assert space.score(BELL, without=(one, other), parts=[merged]) == plain_score([*rest, merged], BELL)
        assert space.score(BELL, without=(other, one), parts=[merged]) == plain_score([*rest, merged], BELL)


def test_mergers_of_a_theme_and_a_part_that_was_scored_before_cost_no_further_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, rows = ThemeSpace(64), random_rows(200, 64)
    for number, row in enumerate(rows):
        space.put(f"t{number}", part_of(row[None]))
    part = part_of(rows[:2])
    space.score(BELL, without=("t0",), parts=[part])
    targets = space.similar("t5", -1.0, 10)
    monkeypatch.setattr(CentroidProducts, "_computed", lambda *_: pytest.fail("passed over all themes again"))
    for target in targets:
        merged = part_of(rows[[5, int(target[1:])]])
        space.score(BELL, without=("t5", target), parts=[merged])
    space.put("t0", part)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 120), st.integers(0, 2**16))
def test_products_that_are_kept_are_those_computed_anew(steps: int, seed: int) -> None:
    """Rows that are changed, emptied and moved up, and more directions than are kept."""
    rng = np.random.default_rng(seed)
    directions = np.stack([part_of(row[None]).direction for row in random_rows(24, 8, seed)])
    products, rows = CentroidProducts(8), dict[int, Floats]()
    products.make_room(20)
    for _ in range(steps):
        row, place = int(rng.integers(20)), int(rng.integers(24))
        if rng.random() < 0.6:
            products.put(row, directions[place])
            rows[row] = directions[place]
        elif rng.random() < 0.1 and rows:
            products.keep_rows(np.array(sorted(rows)))
            products.make_room(20 - len(rows))
            rows = {new: rows[old] for new, old in enumerate(sorted(rows))}
        else:
            products.drop(row)
            rows.pop(row, None)
        sought = directions[int(rng.integers(24))]
        found = products.of(sought)
        assert set(np.flatnonzero(np.isfinite(found)).tolist()) == set(rows)
        assert all(abs(found[row] - direction @ sought) <= products.margin for row, direction in rows.items())
        found[:] = 0  # the caller's own


def test_a_fact_graph_has_the_nearest_others_of_positive_cosine_best_first() -> None:
    rows = unit_rows([1, 0], [1, 1], [0, 1], [-1, 0])
    graph = fact_graph(["a", "b", "c", "d"], rows, 10)
    half = round(math.sqrt(0.5), 6)
    assert graph == {"a": [("b", half)], "b": [("a", half), ("c", half)], "c": [("b", half)], "d": []}
    assert fact_graph(["a", "b", "c", "d"], rows, 1)["b"] == [("a", half)], "ties go to the older"


def test_without_a_rebuild_edges_lead_to_facts_stored_before_or_with_it() -> None:
    index = VectorIndex(2)
    index.add(["a", "b"], unit_rows([1, 0], [1, 1]))
    graph = newest_edges(index, ["a", "b"], 10)
    index.add(["c"], unit_rows([1, 0.1]))
    graph |= newest_edges(index, ["c"], 10)
    assert [name for name, _ in graph["c"]] == ["a", "b"]
    assert [name for name, _ in graph["a"]] == ["b"], "an older fact gains no edge"


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 99))
def test_a_rebuilt_graph_is_that_of_an_exhaustive_search(count: int, k: int, seed: int) -> None:
    rows, ids = random_rows(count, 4, seed), [f"s{n}" for n in range(count)]
    cosines = np.round(rows.astype(np.float64) @ rows.T.astype(np.float64), 6)
    graph = fact_graph(ids, rows, k)
    for n in range(count):
        order = sorted((m for m in range(count) if m != n and cosines[n, m] > 0), key=lambda m: (-cosines[n, m], m))
        assert [name for name, _ in graph[ids[n]]] == [ids[m] for m in order[:k]]


def test_components_follow_edges_and_a_long_one_is_cut_in_the_order_of_the_walk() -> None:
    rows = unit_rows([1, 0, 0], [0, 1, 0], [1, 0.1, 0], [0, 1, 0.1], [0, 0, 1])
    assert components(rows, edge=0.66, least=2, cap=12) == [[0, 2], [1, 3], [4]]
    assert components(rows, edge=0.66, least=5, cap=12) == [[0, 1, 2, 3, 4]]
    same = unit_rows(*[[1, 0]] * 5)
    assert components(same, edge=0.66, least=1, cap=2) == [[0, 4], [3, 2], [1]]


def test_a_walk_goes_deep_before_wide_and_takes_the_largest_neighbour_first() -> None:
    def walk(*degrees: float) -> list[list[int]]:
        rows = unit_rows(*[[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in degrees])
        return components(rows, edge=0.7, least=1, cap=12)

    assert walk(0, 40, -40, 80) == [[0, 2, 1, 3]]  # 0-1, 0-2 and 1-3 are linked: of 1 and 2 comes 2, then 1 and its 3
    assert walk(0, 40, -40, -80) == [[0, 2, 3, 1]]  # 0-1, 0-2 and 2-3 are linked: 3 comes before 1, deep before wide


def test_runs_along_the_first_component_are_blocks_of_the_cap() -> None:
    rows = unit_rows(*[[1, n / 10] for n in range(5)])
    blocks = along_first_component(rows, cap=2)
    assert sorted(map(sorted, blocks)) in ([[0], [1, 2], [3, 4]], [[0, 1], [2, 3], [4]])
    assert along_first_component(rows, cap=12)[0] and len(along_first_component(rows, cap=12)) == 1


def linkage_parts(rows: Vectors, parts: int) -> Cutting:
    return linkage_cuttings(cosines_between(rows), (parts,))[0]


def test_linkage_separates_two_groups() -> None:
    rows = unit_rows([1, 0], [0, 1], [1, 0.05], [0.05, 1])
    assert linkage_parts(rows, parts=2) == [[0, 2], [1, 3]]
    assert linkage_parts(rows[:1], parts=2) == [[0]]


@settings(deadline=None)
@given(st.integers(1, 16), st.floats(0, 1), st.integers(0, 99))
def test_cuttings_by_one_linkage_are_those_by_one_each(count: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(*(np.eye(4)[rng.integers(3, size=count)] + spread * rng.standard_normal((count, 4))))
    cosines = cosines_between(rows)
    assert linkage_cuttings(cosines, (2, 3)) == [linkage_parts(rows, parts=2), linkage_parts(rows, parts=3)]
    for cutting in linkage_cuttings(cosines, (2, 3)):
        assert cutting == ordered(cutting)
    known = components(rows, edge=0.6, least=2, cap=5, cosines=cosines)
    assert known == components(rows, edge=0.6, least=2, cap=5)


@settings(deadline=None)
@given(st.integers(1, 16), st.integers(0, 99))
def test_every_cutting_is_a_partition_within_the_cap(count: int, seed: int) -> None:
    rows = random_rows(count, 4, seed)
    for cutting in (components(rows, edge=0.3, least=1, cap=5), along_first_component(rows, cap=5)):
        assert sorted(row for part in cutting for row in part) == list(range(count))
        assert max(map(len, cutting)) <= 5
    assert sorted(row for part in linkage_parts(rows, parts=3) for row in part) == list(range(count))


def test_the_best_cutting_wins_and_equal_ones_are_one() -> None:
    halves, whole = [[0, 1], [2]], [[0, 1, 2]]
    assert best([whole, halves], lambda cutting: len(cutting)) == halves
    assert best([whole, halves], lambda cutting: 1.0) == whole
    assert distinct([halves, [[1, 0], [2]], whole]) == [halves, whole]


def test_the_mean_over_pairs() -> None:
    rows = unit_rows([1, 0], [0, 1], [1, 1])
    assert mean_pairwise(rows) == pytest.approx((0 + 2 * math.sqrt(0.5)) / 3, abs=1e-6)
    assert mean_pairwise(rows[:1]) == 1.0
    assert np.diag(cosines_between(rows)) == pytest.approx([1, 1, 1])


def toy() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([0.9, 0.8, 0.1]), edge_weights(["a", "b", "c"], {"a": [("b", 0.8)], "b": [("a", 0.8)]})


def test_the_toy_of_three_nodes_step_by_step() -> None:
    relevance, weights = toy()
    assert scaled(relevance) == pytest.approx([1.0, 0.875, 0.0])
    assert weights.sum() == pytest.approx(4.6)
    first = 0.7 * weights.sum(axis=1) / 4.6 + 0.3 * scaled(relevance)
    assert first == pytest.approx([0.5739, 0.5364, 0.1522], abs=1e-4)
    chosen = select_representatives(relevance, weights, budget=5, alpha=0.7, coverage=1.0, normaliser="total")
    assert chosen == [0, 1, 2]


def test_with_the_largest_gain_as_z_the_uncovered_node_comes_second() -> None:
    relevance, weights = toy()  # step 2: b 0.3 * 0.875 = 0.2625, c 0.7 * 1 / 1.8 = 0.3889
    chosen = select_representatives(relevance, weights, budget=5, alpha=0.7, coverage=1.0, normaliser="max_gain")
    assert chosen == [0, 2], "everything is covered then"


@pytest.mark.parametrize(("budget", "coverage", "expected"), [(1, 1.0, [0]), (5, 0.6, [0]), (5, 0.7, [0, 1, 2])])
def test_budget_and_coverage_stop_the_choice(budget: int, coverage: float, expected: list[int]) -> None:
    relevance, weights = toy()
    chosen = select_representatives(relevance, weights, budget=budget, alpha=0.7, coverage=coverage, normaliser="total")
    assert chosen == expected


def test_equal_relevance_counts_half_and_ties_go_to_the_first() -> None:
    assert scaled(np.array([0.3, 0.3])) == pytest.approx([0.5, 0.5])
    chosen = select_representatives(
        np.array([0.3, 0.3]), np.eye(2), budget=1, alpha=0.5, coverage=1.0, normaliser="total"
    )
    assert chosen == [0]
    assert (
        select_representatives(np.zeros(0), np.zeros((0, 0)), budget=3, alpha=0.5, coverage=1, normaliser="total") == []
    )


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1), st.integers(0, 99))
def test_representatives_are_distinct_within_budget_and_cover_all_or_use_it_up(
    count: int, budget: int, alpha: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((count, count)) < 0.2, rng.random((count, count)), 0.0)
    np.fill_diagonal(weights, 1.0)
    relevance = np.sort(rng.random(count))[::-1]
    chosen = select_representatives(relevance, weights, budget=budget, alpha=alpha, coverage=1.0, normaliser="max_gain")
    assert len(set(chosen)) == len(chosen) <= budget
    covered = (weights[chosen] > 0).any(axis=0)
    if alpha > 0.01:
        assert covered.all() or len(chosen) == min(budget, count)
    assert alpha > 0 or chosen == list(range(len(chosen))), "without coverage it is the order of relevance"
