"""SAGE's mathematics: score, concentration, volume, threshold and routing rule, against hand-worked values."""

from math import e, exp, log, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memsys.embedding.contract import Vectors
from memsys.gate.vmf import KappaRule, VmfScope, vmf_score
from memsys.sage.extent import RunningVolume
from memsys.sage.threshold import ThresholdRule, ln_volume, route

PRINTED = KappaRule(None, 1e-3)
RULE = ThresholdRule("adaptive", None, 0.25, 0.025, 2.0, 0.9, 16, 1e-3, 1e-9)

cosines = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1, 1))
kappas = st.floats(1e-3, 1e9)


def unit_rows(count: int, dimension: int, seed: int = 0) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    normed: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normed


def scope_of(rows: Vectors, rule: KappaRule = PRINTED) -> VmfScope:
    scope = VmfScope(rows.shape[1], rule)
    for number, row in enumerate(rows):
        scope.add(str(number), row)
    return scope


def test_the_score_of_two_memories_by_hand() -> None:
    # cosines 1 and 0 at kappa 2: ln((e^2 + 1) / 2) / 2
    assert vmf_score(np.array([1.0, 0.0]), 2.0) == pytest.approx(log((e**2 + 1) / 2) / 2)


@given(cosines, kappas)
def test_the_score_lies_between_the_greatest_cosine_and_that_less_ln_n_over_kappa(values: np.ndarray, k: float) -> None:
    score, greatest = vmf_score(values, k), float(values.max())
    assert max(-1.0, greatest - log(len(values)) / k) - 1e-9 <= score <= greatest + 1e-9
    assert -1.0 <= score <= 1.0


@given(cosines)
def test_the_score_goes_from_the_mean_to_the_greatest_cosine(values: np.ndarray) -> None:
    assert vmf_score(values, 1e-3) == pytest.approx(float(values.mean()), abs=1e-3)
    assert vmf_score(values, 1e9) == pytest.approx(float(values.max()), abs=1e-7)


@given(st.floats(-1, 1), kappas)
def test_one_memory_gives_its_cosine_whatever_kappa(cosine: float, kappa: float) -> None:
    assert vmf_score(np.array([cosine]), kappa) == pytest.approx(cosine, abs=1e-12)


@given(cosines, st.integers(0, 39), st.floats(0, 0.5), kappas)
def test_a_nearer_memory_never_lowers_the_score(values: np.ndarray, at: int, by: float, kappa: float) -> None:
    nearer = values.copy()
    nearer[at % len(values)] = min(1.0, nearer[at % len(values)] + by)
    assert vmf_score(nearer, kappa) >= vmf_score(values, kappa) - 1e-9


def test_kappa_by_hand() -> None:
    # R = 0.5, d = 384: 0.5 (384 - 0.25) / 0.75
    assert PRINTED.concentration(0.5, 384) == pytest.approx(0.5 * 383.75 / 0.75)
    assert KappaRule(50, 1e-3).concentration(0.5, 384) == 50
    assert PRINTED.concentration(0.128, 384) < 50 < PRINTED.concentration(0.129, 384)


def test_kappa_has_no_pole_and_no_zero() -> None:
    assert PRINTED.concentration(0.0, 384) == 1e-3
    for length in (1.0, 1.0000001):
        kappa = PRINTED.concentration(length, 384)
        assert 1e8 < kappa < 1e9
    assert KappaRule(50, 1e-3).concentration(1.0, 384) == 50


@given(st.floats(0, 1), st.floats(0, 1), st.integers(2, 2000))
def test_kappa_grows_with_concentration(one: float, other: float, dimension: int) -> None:
    low, high = sorted((one, other))
    assert 0 < PRINTED.concentration(low, dimension) <= PRINTED.concentration(high, dimension) * (1 + 1e-9)


def test_the_resultant_length_follows_additions_and_replacements() -> None:
    east, north, west = np.eye(2, dtype=np.float32)[0], np.eye(2, dtype=np.float32)[1], np.array([-1, 0], np.float32)
    scope = VmfScope(2, PRINTED)
    assert scope.resultant == 0.0
    scope.add("a", east)
    assert scope.resultant == 1.0
    scope.add("b", north)
    assert scope.resultant == pytest.approx(sqrt(2) / 2)
    scope.replace("b", west)
    assert scope.resultant == 0.0
    rows = unit_rows(50, 16)
    assert scope_of(rows).resultant == pytest.approx(float(np.linalg.norm(rows.mean(axis=0))), abs=1e-6)


def test_support_names_the_nearest_memory_and_ties_go_to_the_older() -> None:
    scope = scope_of(np.array([[0, 1], [1, 0], [1, 0]], np.float32))
    support = scope.support(np.array([0.8, 0.6], np.float32))
    assert (support.nearest, round(support.cosine, 6)) == ("1", 0.8)
    wanted = vmf_score(np.array([0.6, 0.8, 0.8]), scope.kappa)
    assert support.score == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("rule", [PRINTED, KappaRule(50, 1e-3)])
def test_a_store_of_duplicates_is_finite(rule: KappaRule) -> None:
    rows = np.repeat(unit_rows(1, 8), 30, axis=0)
    scope = scope_of(rows, rule)
    assert scope.support(rows[0]).score == pytest.approx(1.0, abs=1e-6)
    assert scope.support(-rows[0]).score == pytest.approx(-1.0, abs=1e-6)
    assert ln_volume(rows, 16, 1e-3) == pytest.approx(16 * log(1e-3))


def test_an_isolated_duplicate_under_the_cap_is_ignored_merged_and_at_last_added() -> None:
    # s = 1 - ln(N) / 50 where the others lie far away: novelty ln(N) / 100, beside thresholds 0.025 and 0.05
    for count, action in ((12, "noop"), (13, "update"), (148, "update"), (149, "add")):
        score = vmf_score(np.array([1.0] + [-1.0] * (count - 1)), 50.0)
        assert score == pytest.approx(1 - log(count) / 50)
        assert route((1 - score) / 2, 0.025, 0.025) == action


@given(st.integers(1, 30), st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_order_of_memories_does_not_matter(count: int, seed: int, random: Random) -> None:
    rows, order = unit_rows(count, 8, seed), [*range(count)]
    random.shuffle(order)
    new = unit_rows(1, 8, seed + 100)[0]
    one, other = scope_of(rows).support(new), scope_of(rows[order]).support(new)
    assert other.score == pytest.approx(one.score, abs=1e-6)
    assert (other.cosine, order[int(other.nearest)]) == (pytest.approx(one.cosine), int(one.nearest))


def test_a_snapshot_scores_bit_by_bit_alike() -> None:
    rows = unit_rows(40, 16)
    scope, copy = scope_of(rows), VmfScope(16, PRINTED)
    scope.replace("3", rows[7])
    copy.load_state(scope.state())
    query = unit_rows(1, 16, seed=9)[0]
    assert copy.support(query) == scope.support(query) and copy.kappa == scope.kappa


def test_the_volume_of_a_box_by_hand() -> None:
    # a 4 x 2 rectangle's corners: the principal axes are its sides; two directions more that do not exist
    corners = np.array([[2, 1, 0], [2, -1, 0], [-2, 1, 0], [-2, -1, 0]], np.float32)
    assert ln_volume(corners, 2, 1e-3) == pytest.approx(log(4) + log(2))
    assert ln_volume(corners, 4, 1e-3) == pytest.approx(log(4) + log(2) + 2 * log(1e-3))


def test_fewer_than_two_memories_have_volume_one() -> None:
    assert ln_volume(unit_rows(0, 8), 16, 1e-3) == ln_volume(unit_rows(1, 8), 16, 1e-3) == 0.0


@pytest.mark.parametrize(("count", "dimension"), [(2, 30), (5, 30), (30, 30), (31, 30), (200, 30), (40, 8)])
def test_the_volume_is_that_of_a_plain_singular_value_decomposition(count: int, dimension: int) -> None:
    rows = unit_rows(count, dimension)
    centred = rows.astype(np.float64) - rows.astype(np.float64).mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    placed = centred @ directions[:16].T
    spans = np.zeros(16)
    spans[: placed.shape[1]] = np.ptp(placed, axis=0)
    assert ln_volume(rows, 16, 1e-3) == pytest.approx(float(np.log(np.maximum(spans, 1e-3)).sum()), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 60), st.integers(0, 20), st.integers(1, 16), st.integers(0, 9))
def test_a_volume_kept_up_to_date_is_that_of_all_memories(
    dimension: int, count: int, merges: int, components: int, seed: int
) -> None:
    rng, scope, running = np.random.default_rng(seed), VmfScope(dimension, PRINTED), RunningVolume(components, 1e-3)
    rows = unit_rows(count + merges, dimension, seed)
    for number in range(count + merges):
        if number < count:
            scope.add(str(number), rows[number])
            running.added(rows[number])
        else:
            item = str(rng.integers(count))
            running.replaced(scope.rows([item])[0], rows[number])
            scope.replace(item, rows[number])
        if number % 7 == 0:
            running.ln_volume(scope)
    # Directions of the same extent are free to turn: their spans are compared where they are told apart.
    values = np.linalg.eigvalsh(np.cov(scope.rows().astype(np.float64).T, ddof=0).reshape(dimension, dimension))
    apart = components >= dimension or values[-components] - values[-components - 1] > 1e-9
    if apart and (np.diff(values) > 1e-9).all():
        assert running.ln_volume(scope) == pytest.approx(ln_volume(scope.rows(), components, 1e-3), abs=1e-6)
    other = RunningVolume(components, 1e-3)
    other.load_state(running.state(), dimension)
    assert other.ln_volume(scope) == running.ln_volume(scope), "bit by bit"


def test_a_snapshot_of_before_the_sum_was_kept_makes_it_of_the_memories() -> None:
    scope, running, restored = scope_of(unit_rows(50, 8)), RunningVolume(4, 1e-3), RunningVolume(4, 1e-3)
    running.ln_volume(scope)
    restored.load_state({}, 8)
    added = unit_rows(1, 8, 90)[0]
    scope.add("new", added)
    running.added(added)
    restored.added(added)
    assert restored.ln_volume(scope) == pytest.approx(running.ln_volume(scope), abs=1e-6)
    assert running.state()["outer"].shape == (8 * 9 // 2,), "a triangle in double precision"


def test_a_write_among_many_memories_makes_no_scatter_matrix_of_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    scope, running = scope_of(unit_rows(50, 8)), RunningVolume(4, 1e-3)
    running.ln_volume(scope)

    def refused(self: VmfScope, items: object = None) -> Vectors:
        raise AssertionError("all memories were read")

    monkeypatch.setattr(VmfScope, "rows", refused)
    for number in range(3):
        scope.add(f"x{number}", unit_rows(1, 8, 90 + number)[0])
        running.added(unit_rows(1, 8, 90 + number)[0])
        running.ln_volume(scope)


@settings(deadline=None)  # the first volume loads SciPy
@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 5))
def test_volume_density_and_threshold_are_finite_and_in_range(count: int, dimension: int, seed: int) -> None:
    volume = ln_volume(unit_rows(count, dimension, seed), 16, 1e-3)
    target = RULE.target(RULE.ln_density(count, volume))
    assert 0.025 <= target <= 0.275 + 1e-12
    assert 16 * log(1e-3) - 1e-6 <= volume <= 16 * log(2) + 1e-6


def test_density_and_target_by_hand() -> None:
    assert RULE.ln_density(0, 0.0) is None
    assert RULE.target(None) == pytest.approx(0.275)
    assert RULE.target(RULE.ln_density(1, 0.0)) == pytest.approx(0.025 + 0.25 * exp(-2))
    # three memories in a volume of 12: rho = 0.25
    assert RULE.target(RULE.ln_density(3, log(12))) == pytest.approx(0.025 + 0.25 * exp(-0.5))


def test_a_huge_density_gives_the_floor_and_the_volume_has_one() -> None:
    assert RULE.target(RULE.ln_density(10**6, -1000.0)) == 0.025
    assert RULE.ln_density(7, -1000.0) == pytest.approx(log(7) + log(1e9))
    assert RULE.target(1000.0) == 0.025  # a density beyond every float


def test_the_threshold_of_the_first_writes() -> None:
    tau, taus = None, []
    for count in (0, 1, 2, 9):
        tau = RULE.step(tau, RULE.target(RULE.ln_density(count, ln_volume(unit_rows(count, 64), 16, 1e-3))))
        taus.append(tau)
    assert taus[:3] == pytest.approx([0.275, 0.2534, 0.2305], abs=1e-4)
    assert taus[3] == pytest.approx(0.9 * taus[2] + 0.1 * 0.025)


@given(st.lists(st.floats(0.025, 0.275), min_size=1, max_size=60))
def test_the_moving_average_stays_between_floor_and_start(targets: list[float]) -> None:
    tau = None
    for target in targets:
        before = tau
        tau = RULE.step(tau, target)
        low, high = sorted((target, target if before is None else before))
        assert low - 1e-12 <= tau <= high + 1e-12


def test_a_fixed_threshold_never_moves() -> None:
    fixed = ThresholdRule("fixed", 0.15, 0.25, 0.025, 2.0, 0.9, 16, 1e-3, 1e-9)
    assert fixed.step(None, 0.2) == fixed.step(0.3, 0.1) == 0.15


@pytest.mark.parametrize(
    ("novelty", "action"),
    [(0.3, "update"), (0.1 + 0.2, "update"), (0.2999, "noop"), (0.3249, "update"), (0.325, "add"), (1.0, "add")],
)
def test_the_edges_of_the_band_belong_to_the_action_above(novelty: float, action: str) -> None:
    assert route(novelty, 0.3, 0.025) == action


@given(st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.2))
def test_more_novelty_never_leads_down(novelty: float, tau: float, delta: float) -> None:
    order = ["noop", "update", "add"]
    assert order.index(route(novelty, tau, delta)) <= order.index(route(min(1.0, novelty + 0.05), tau, delta))
    # the code's scale: everything doubled
    assert (
        route(novelty, tau, delta) == route(2 * novelty, 2 * tau, 2 * delta)
        or min(abs(novelty - tau), abs(novelty - tau - delta)) < 1e-6
    )
