"""Intervals and tests: hand values, agreement with scipy, properties."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eval.scoring import randomisation
from eval.scoring.clusters import standard_error
from eval.scoring.inference import MICRO, MeanRule, MetricScores, bootstrap_interval, multiplicities, point
from eval.scoring.paired import compare_paired, holm, minimum_detectable_difference, win_tie_loss
from eval.scoring.randomisation import PValue, randomisation_test


def scores(values: list[float], conversations: list[str], strata: list[int] | None = None) -> MetricScores:
    return MetricScores(np.array(values), tuple(conversations), np.array(strata or [1] * len(values)))


def one_per_conversation(values: list[float]) -> MetricScores:
    return scores(values, [f"c{index:03d}" for index in range(len(values))])


def randomisation_p_value(differences: MetricScores, mean: MeanRule = MICRO) -> float | None:
    found = randomisation_test(differences, mean)
    return None if found is None else found.value


def test_point_by_hand() -> None:
    data = scores([1.0, 0.0, 0.5, 0.25], ["a", "a", "b", "b"], [1, 1, 1, 5])
    assert point(data) == 0.4375
    assert point(data, MeanRule(((1, 1.0), (5, 1.0)))) == (0.5 + 0.25) / 2
    assert point(data, MeanRule(((1, 3.0), (5, 1.0)))) == (3 * 0.5 + 0.25) / 4
    assert point(data, MeanRule(((1, 1.0), (2, 9.0)))) == 0.5  # no question of category 2; category 5 does not count
    assert math.isnan(point(scores([], [])))


def test_multiplicities_are_multinomial() -> None:
    drawn = multiplicities(10, 4000, 0)
    assert drawn.shape == (4000, 10)
    assert (drawn.sum(axis=1) == 10).all()
    assert abs(float(drawn.var()) - 0.9) < 0.03  # n p (1 - p)


def test_bootstrap_distribution_is_the_exact_one() -> None:
    """Three conversations of unequal size have 27 equally likely resamples: compare the quantiles with all of them."""
    clusters = {"a": [1.0, 0.0], "b": [0.5], "c": [0.2, 0.4, 0.9]}
    data = scores(
        [value for values in clusters.values() for value in values],
        [name for name, values in clusters.items() for _ in values],
    )
    every = sorted(
        float(np.mean([value for name in names for value in clusters[name]]))
        for names in itertools.product("abc", repeat=3)
    )
    interval = bootstrap_interval(data, level=0.5, resamples=40_000)
    assert interval is not None
    assert (interval.by, interval.units) == ("conversation", 3)
    assert interval.low == pytest.approx(every[6], abs=1e-12)  # 0.25 of 27 lies inside the seventh value's step
    assert interval.high == pytest.approx(every[20], abs=1e-12)


def test_agrees_with_scipy_when_every_conversation_has_one_question() -> None:
    rng = np.random.default_rng(3)
    values = rng.beta(0.5, 2.0, size=60)
    ours = bootstrap_interval(one_per_conversation(values.tolist()), resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=rng).confidence_interval
    assert ours is not None
    assert ours.low == pytest.approx(theirs.low, abs=0.004)
    assert ours.high == pytest.approx(theirs.high, abs=0.004)


def test_clustered_interval_is_wider_when_conversations_differ() -> None:
    """Ten conversations of twenty equal answers hold ten draws, not two hundred."""
    values = [float(c % 2) for c in range(10) for _ in range(20)]
    names = [f"c{c}" for c in range(10) for _ in range(20)]
    clustered = bootstrap_interval(scores(values, names))
    naive = bootstrap_interval(one_per_conversation(values))
    assert clustered is not None
    assert naive is not None
    ratio = (clustered.high - clustered.low) / (naive.high - naive.low)
    assert 3.5 < ratio < 5.5  # sqrt(20) = 4.47


def test_one_conversation_resamples_questions_and_says_so() -> None:
    interval = bootstrap_interval(scores([0.0, 1.0, 1.0, 0.5], ["a"] * 4))
    assert interval is not None
    assert (interval.by, interval.units) == ("question", 4)


def test_fewer_than_two_units_have_no_interval() -> None:
    assert bootstrap_interval(scores([1.0], ["a"])) is None
    assert bootstrap_interval(scores([], [])) is None
    assert randomisation_p_value(scores([1.0], ["a"])) is None
    assert minimum_detectable_difference(standard_error(scores([1.0], ["a"]))) is None


def test_coverage_of_the_mean() -> None:
    """95 % intervals from thirty conversations hold the true mean about nine times in ten or more."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        interval = bootstrap_interval(one_per_conversation(rng.exponential(1.0, 30).tolist()), resamples=500)
        assert interval is not None
        hits += interval.low <= 1.0 <= interval.high
    assert 0.88 < hits / 300 < 0.98


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd"), st.integers(1, 3)), min_size=2, max_size=30),
    st.floats(0.1, 5),
    st.floats(-2, 2),
)
def test_interval_moves_with_the_scores(rows: list[tuple[float, str, int]], scale: float, shift: float) -> None:
    values, names, strata = (list(column) for column in zip(*rows, strict=True))
    mean = MeanRule(((1, 0.5), (2, 0.25), (3, 0.25)))
    plain = bootstrap_interval(scores(values, names, strata), mean, resamples=200)
    moved = bootstrap_interval(scores([scale * v + shift for v in values], names, strata), mean, resamples=200)
    assert plain is not None
    assert moved is not None
    assert moved.low == pytest.approx(scale * plain.low + shift, abs=1e-9)
    assert moved.high == pytest.approx(scale * plain.high + shift, abs=1e-9)
    assert min(values) - 1e-9 <= plain.low <= plain.high <= max(values) + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(12)))
def test_order_of_questions_does_not_matter(order: list[int]) -> None:
    values = [index / 11 for index in range(12)]
    names = [f"c{index % 4}" for index in range(12)]
    again = scores([values[i] for i in order], [names[i] for i in order])
    first, second = bootstrap_interval(scores(values, names)), bootstrap_interval(again)
    assert first is not None
    assert second is not None
    assert second.low == pytest.approx(first.low, abs=1e-12)
    assert second.high == pytest.approx(first.high, abs=1e-12)


def test_randomisation_by_hand() -> None:
    """Three conversations, all in favour of A: 2 of 8 sign patterns are as extreme."""
    assert randomisation_p_value(one_per_conversation([0.1, 0.2, 0.3])) == 2 / 8
    assert randomisation_p_value(one_per_conversation([0.0, 0.0, 0.0])) == 1.0


def test_exact_randomisation_agrees_with_scipy() -> None:
    differences = np.array([0.11, -0.04, 0.2, 0.07, -0.01, 0.13, 0.02, 0.09])
    theirs = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    ours = randomisation_p_value(one_per_conversation(differences.tolist()))
    assert ours == pytest.approx(theirs.pvalue, abs=1e-12)


def test_exact_randomisation_of_unequal_conversations_agrees_with_scipy() -> None:
    """Signs flip for whole conversations: scipy flips the conversations' sums."""
    clusters = {"a": [0.4, -0.1, 0.2], "b": [0.3], "c": [-0.2, 0.1], "d": [0.5, 0.4, 0.1, -0.3], "e": [0.0, 0.2]}
    names = [name for name, values in clusters.items() for _ in values]
    ours = compare_paired(scores([value for values in clusters.values() for value in values], names))
    sums = np.array([sum(values) for values in clusters.values()])
    theirs = stats.permutation_test(
        (sums, np.zeros_like(sums)),
        lambda x, y, axis: np.sum(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@given(st.lists(st.sampled_from([-0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=40))
def test_wins_ties_and_losses_agree_with_the_ranks_of_scipy(values: list[float]) -> None:
    """Wilcoxon's test drops exactly the ties, and the signs of the rest are the wins and losses."""
    wins, ties, losses = win_tie_loss(np.array(values))
    assert wins + ties + losses == len(values)
    signs = stats.rankdata(np.sign(values), method="dense")
    assert len(set(signs)) == sum(count > 0 for count in (wins, ties, losses))
    assert np.sign(values).sum() == wins - losses


def test_drawn_signs_approach_the_exact_p_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """By no more than four of the standard errors that are stated, whatever the seed, with a million draws or more."""
    data = one_per_conversation(np.random.default_rng(1).normal(0.3, 1, 30).tolist())
    exact = randomisation_test(data)
    assert exact is not None and exact.error == 0
    monkeypatch.setattr(randomisation, "EXACT_UNITS", 1)
    for seed in range(4):
        drawn = randomisation_test(data, seed=seed)
        assert drawn is not None and drawn.value != exact.value
        assert abs(drawn.value - exact.value) < 4 * drawn.error < 0.002
    assert randomisation.DRAWS >= 1_000_000


def test_drawn_sums_that_equal_what_was_reached_count_as_in_double_precision() -> None:
    """Of 40 sizes 1, 1.001, 1.002 and so on many sums are equal, and single precision alone would miss some of them."""
    sizes = 1 + np.arange(40) / 1000
    words = [randomisation._words(number, 20_000, 0) for number in range(3)]
    signs = np.concatenate([1.0 - 2.0 * ((word[:, None] >> np.arange(16)) & 1) for word in words], axis=1)[:, :40]
    sums = np.abs(signs @ sizes)
    for reached in np.unique(sums.round(6))[1::200]:
        extreme = int(np.count_nonzero(sums >= reached - 1e-9))
        drawn = randomisation._drawn(sizes, float(reached) - 1e-9, 20_000, 0)
        assert drawn.value == (extreme + 1) / 20_001


@pytest.mark.parametrize("count", [9, 20])
def test_two_halves_count_what_all_patterns_count(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1, count)
    signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
    every = float(np.mean(np.abs(signs @ values) >= abs(values.sum()) * (1 - 1e-9)))
    assert randomisation_p_value(one_per_conversation(values.tolist())) == pytest.approx(every, abs=1e-12)


def test_differences_on_a_grid_are_added_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall has differences of halves, thirds and quarters: of thirty such the two ways give the same p-value."""
    data = one_per_conversation(np.random.default_rng(4).choice([-1, -0.5, 1 / 3, 0.25, 1], 30).tolist())
    counted = randomisation_test(data)
    monkeypatch.setattr(randomisation, "EXACT_UNITS", 1)
    added = randomisation_test(data)
    assert counted is not None and added is not None
    assert added == PValue(pytest.approx(counted.value, abs=1e-12), 0.0)


def test_the_sign_of_a_conversation_turns_its_part_of_a_weighted_mean() -> None:
    """Two categories of unlike size, their means averaged: 2 of 8 patterns are as far from 0."""
    data = scores([0.3, 0.2, 0.4, 0.1, 0.2], ["a", "a", "b", "c", "c"], [1, 2, 1, 1, 2])
    assert randomisation_p_value(data, MeanRule(((1, 1.0), (2, 1.0)))) == 2 / 8


def test_a_sum_that_rounding_moved_counts_as_equal() -> None:
    """Committed scores have six decimals: three times a third is then not one."""
    exact = randomisation_p_value(one_per_conversation([1 / 3, 1 / 3, 1 / 3, -1.0, 0.5]))
    assert randomisation_p_value(one_per_conversation([0.333333, 0.333333, 0.333333, -1.0, 0.5])) == exact


def test_equal_differences_have_the_exact_p_value_of_the_sign_test() -> None:
    """Nine wins and one loss among two hundred ties of one conversation: 22 of 1024 sign patterns."""
    data = scores([1.0] * 9 + [-1.0] + [0.0] * 200, ["a"] * 210)
    assert randomisation_p_value(data) == pytest.approx(22 / 1024)


def test_ties_move_nothing_and_leave_the_p_value_exact() -> None:
    values = [0.4, -0.1, 0.2, 0.3, 0.7]
    assert randomisation_p_value(scores(values + [0.0] * 300, ["a"] * 305)) == randomisation_p_value(
        scores(values, ["a"] * 5)
    )


def test_two_equal_systems_have_p_value_one() -> None:
    assert randomisation_p_value(scores([0.0, 0.0, 0.0], ["a", "b", "c"])) == 1.0


def test_p_values_are_uniform_without_an_effect() -> None:
    rng = np.random.default_rng(2)
    draws = [randomisation_p_value(one_per_conversation(rng.normal(size=10).tolist())) for _ in range(300)]
    rejected = np.mean([p is not None and p <= 0.05 for p in draws])
    assert 0.02 < rejected < 0.09


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_order_and_only_raises(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(p_values, kind="stable")] == sorted(adjusted)
    bonferroni = [min(1.0, p * len(p_values)) for p in p_values]
    assert all(q <= b + 1e-12 for q, b in zip(adjusted, bonferroni, strict=True))


def test_win_tie_loss() -> None:
    assert win_tie_loss(np.array([0.5, 0.0, 1e-12, -0.1, 0.2])) == (2, 2, 1)


def test_minimum_detectable_difference_by_hand() -> None:
    """With one question per conversation it is the textbook t formula on the standard error of the mean."""
    values = [0.1, -0.2, 0.3, 0.0, 0.4]
    error = np.std(values, ddof=1) / math.sqrt(5)
    expected = (stats.t.ppf(0.975, 4) + stats.t.ppf(0.8, 4)) * error
    assert minimum_detectable_difference(standard_error(one_per_conversation(values))) == pytest.approx(expected)


def test_minimum_detectable_difference_has_the_power_it_promises() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 1, (400, 30))
    detectable = (stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)) / math.sqrt(30)
    found = np.mean(stats.ttest_1samp(noise + detectable, 0, axis=1).pvalue < 0.05)
    unit_noise = one_per_conversation((noise[0] / noise[0].std(ddof=1)).tolist())
    ours = minimum_detectable_difference(standard_error(unit_noise))
    assert ours == pytest.approx(detectable)
    assert 0.74 < found < 0.86


def test_compare_paired_collects_everything() -> None:
    result = compare_paired(scores([1.0, 0.0, -0.5, 0.5], ["a", "a", "b", "c"]), MICRO)
    assert (result.difference, result.questions) == (0.25, 4)
    assert (result.wins, result.ties, result.losses) == (2, 1, 1)
    assert result.interval is not None
    assert result.interval.units == 3
    assert result.p_value is not None
    assert result.detectable is None  # of three conversations no p-value is below 0.25


@pytest.mark.parametrize(("conversations", "found"), [(2, False), (5, False), (6, True)])
def test_a_detectable_difference_needs_conversations_enough_for_a_small_p_value(
    conversations: int, found: bool
) -> None:
    """Three conversations with the same difference had a detectable difference of 0.0 beside a p-value of 0.25."""
    result = compare_paired(one_per_conversation([0.1 * (number + 1) for number in range(conversations)]))
    assert (result.detectable is not None) == found
    assert result.p_value == pytest.approx(2.0 ** (1 - conversations))


def test_same_call_same_result() -> None:
    data = scores([0.1, 0.9, 0.4, 0.6], ["a", "b", "c", "c"])
    assert compare_paired(data) == compare_paired(data)
    multiplicities.cache_clear()
    assert compare_paired(data) == compare_paired(data)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        scores([1.0], ["a", "b"])
