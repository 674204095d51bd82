"""Intervals over conversations: textbook values, linearised ratios, what one conversation gives, coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eval.scoring.clusters import cluster_interval, standard_error
from eval.scoring.inference import MICRO, Interval, MeanRule, MetricScores


def interval(found: MetricScores, mean: MeanRule = MICRO) -> Interval | None:
    return cluster_interval(found, mean, standard_error(found, mean))


def scores(values: list[float], conversations: list[str], strata: list[int] | None = None) -> MetricScores:
    return MetricScores(np.array(values), tuple(conversations), np.array(strata or [1] * len(values)))


def test_one_question_a_conversation_is_the_t_interval_of_the_textbook() -> None:
    values = np.random.default_rng(0).normal(0.4, 0.2, 10)
    found = interval(scores(values.tolist(), [f"c{number}" for number in range(10)]))
    expected = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.by, found.units) == ("conversation", 10)


def test_a_ratio_is_linearised_by_hand() -> None:
    """Conversations of 1 and 3 questions, means 1 and 0: mean 1/4, contributions (1 - 1/4) / 4 and -3/4 / 4."""
    error = standard_error(scores([1.0, 0.0, 0.0, 0.0], ["a", "b", "b", "b"]))
    assert error is not None
    assert (error.units, error.freedom) == (2, 1.0)
    assert error.value == pytest.approx(np.sqrt(2 * 2 * (3 / 16) ** 2))


def test_a_mean_of_categories_has_the_variance_of_each_category_by_hand() -> None:
    """Two categories of two questions, 0 and 1 each: variances of their means 1/4, of half of their sum 1/8."""
    found = scores([0.0, 1.0, 0.0, 1.0], ["a"] * 4, [1, 1, 2, 2])
    error = standard_error(found, MeanRule(((1, 0.5), (2, 0.5))))
    assert error is not None
    assert error.value == pytest.approx(np.sqrt(1 / 8))
    assert error.freedom == pytest.approx(2.0)  # Satterthwaite: (1/16 + 1/16)^2 / (2 * (1/16)^2 / 1)
    wide = interval(found, MeanRule(((1, 0.5), (2, 0.5))))
    assert wide is not None
    assert wide.high - 0.5 == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(1 / 8))


def test_one_question_of_a_category_leaves_a_mean_of_categories_without_an_interval() -> None:
    """One question for each of two categories: the interval had no width."""
    by_category = MeanRule(((1, 0.5), (2, 0.5)))
    assert interval(scores([0.0, 1.0], ["a", "a"], [1, 2]), by_category) is None
    assert interval(scores([0.0, 1.0, 1.0], ["a"] * 3, [1, 2, 2]), by_category) is None


def test_categories_that_all_conversations_have_leave_the_degrees_of_freedom_of_the_conversations() -> None:
    values = np.random.default_rng(1).normal(0.4, 0.2, 40)
    names, strata = [f"c{number}" for number in range(10) for _ in range(4)], [1, 1, 2, 2] * 10
    error = standard_error(scores(values.tolist(), names, strata), MeanRule(((1, 0.5), (2, 0.5))))
    assert error is not None
    assert error.freedom == 9.0
    assert error.value == pytest.approx(stats.sem(values.reshape(10, 4).mean(axis=1)))


def test_a_category_of_one_conversation_leaves_a_mean_of_categories_without_an_interval() -> None:
    """Two conversations of one kind of question each: the interval was as wide as a point."""
    values, conversations, strata = [1.0, 0.0, 1.0, 1.0, 0.0], ["a", "a", "b", "b", "b"], [1, 1, 4, 4, 4]
    by_category = MeanRule(((1, 0.5), (4, 0.5)))
    assert interval(scores(values, conversations, strata), by_category) is None
    assert interval(scores(values, conversations, strata)) is not None
    shared = scores([*values, 1.0], [*conversations, "a"], [*strata, 4])
    assert interval(shared, by_category) is None  # category 1 is still in one alone
    assert interval(scores([*values, 1.0, 0.5], [*conversations, "a", "b"], [*strata, 4, 1]), by_category)


def test_one_conversation_has_no_interval_for_others() -> None:
    found = interval(scores([0.0, 1.0, 1.0, 0.5], ["a"] * 4))
    assert found is not None
    assert (found.by, found.units) == ("question", 4)
    assert interval(scores([1.0], ["a"])) is None
    assert interval(scores([], [])) is None


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd"), st.integers(1, 3)), min_size=2, max_size=30),
    st.floats(0.1, 5),
    st.floats(-2, 2),
)
def test_interval_moves_with_the_scores(rows: list[tuple[float, str, int]], scale: float, shift: float) -> None:
    both = [(0.5, name, stratum) for name in "ab" for stratum in (1, 2, 3)]  # each category in two conversations
    values, names, strata = (list(column) for column in zip(*rows, *both, strict=True))
    mean = MeanRule(((1, 0.5), (2, 0.25), (3, 0.25)))
    plain = interval(scores(values, names, strata), mean)
    moved = interval(scores([scale * v + shift for v in values], names, strata), mean)
    assert plain is not None
    assert moved is not None
    assert (moved.low, moved.high) == pytest.approx((scale * plain.low + shift, scale * plain.high + shift), abs=1e-6)


def test_coverage_over_ten_conversations_of_unequal_size() -> None:
    """Normal conversation effects: 95 of a hundred, give or take what 300 draws scatter."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(50, 200, 10)
    names = [f"c{number}" for number in np.repeat(np.arange(10), sizes)]
    hits = 0
    for _ in range(300):
        values = np.repeat(rng.normal(0, 0.1, 10), sizes) + rng.normal(0, 0.4, int(sizes.sum()))
        found = interval(scores(values.tolist(), names))
        assert found is not None
        hits += found.low <= 0 <= found.high
    assert 0.92 < hits / 300 < 0.97


@pytest.mark.parametrize("sizes", [[2] * 8, [2, 2, 2, 2, 3, 3, 3, 3], [30, 40, 10, 70]])
def test_coverage_of_a_mean_of_categories_over_the_questions_of_one_conversation(sizes: list[int]) -> None:
    """Before each category had a variance of its own, 95 % intervals of eight pairs covered 84."""
    rng = np.random.default_rng(3)
    strata = [kind for kind, size in enumerate(sizes) for _ in range(size)]
    mean = MeanRule(tuple((kind, 1 / len(sizes)) for kind in range(len(sizes))))
    hits = 0
    for _ in range(400):
        found = interval(scores(rng.normal(size=len(strata)).tolist(), ["a"] * len(strata), strata), mean)
        assert found is not None
        hits += found.low <= 0 <= found.high
    assert hits / 400 > 0.92
