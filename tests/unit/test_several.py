"""Several systems at once: the figures of the paired comparison of two, tiers by hand."""

import numpy as np
import pytest

from eval.scoring.clusters import cluster_interval
from eval.scoring.inference import MetricScores
from eval.scoring.paired import compare_paired
from eval.scoring.several import SystemDifference, compare_all, intervals, tiers

CONVERSATIONS = {"one": ["a"] * 40, "several": [str(number % 7) for number in range(40)]}


@pytest.mark.parametrize("conversations", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_each_pair_is_what_the_comparison_of_two_gives(conversations: list[str]) -> None:
    values = np.random.default_rng(0).random((40, 2))
    found = compare_all(values, conversations)
    rows = zip(values[:, 0] - values[:, 1], conversations, strict=True)
    two = compare_paired(MetricScores.of([(float(value), name, 1) for value, name in rows]))
    (pair,) = found.differences
    assert two.interval is not None
    assert (pair.value, pair.low, pair.high, pair.p_value) == pytest.approx(
        (two.difference, two.interval.low, two.interval.high, two.p_value)
    )
    assert (pair.gained, pair.lost, found.questions) == (two.wins, two.losses, 40)
    for column, ends in enumerate(found.intervals):
        alone = MetricScores.of([(float(v), name, 1) for v, name in zip(values[:, column], conversations, strict=True)])
        expected = cluster_interval(alone)
        assert expected is not None
        assert ends == pytest.approx((expected.low, expected.high))


def test_one_question_has_no_interval_and_is_never_apart() -> None:
    found = compare_all(np.array([[1.0, 0.0]]), ["a"])
    assert found.intervals == (None, None)
    assert (found.differences[0].low, found.differences[0].p_value, found.differences[0].separated) == (
        None,
        None,
        False,
    )
    assert intervals(np.array([[1.0]]), ["a"]) == [None]


def test_references_do_not_weaken_the_test_between_systems() -> None:
    values = np.random.default_rng(1).random((30, 5))
    values[:, 0] += 0.5
    alone, beside = compare_all(values[:, :2], ["a"] * 30), compare_all(values, ["a"] * 30, tested=2)
    assert beside.differences[0].p_value == alone.differences[0].p_value
    whole = compare_all(values, ["a"] * 30)
    assert (whole.differences[0].p_value or 0) > (alone.differences[0].p_value or 1)


def pair(first: int, second: int, p_value: float | None) -> SystemDifference:
    return SystemDifference(first, second, 1.0, 0.5, 1.5, p_value, 1, 0)


def test_tiers_by_hand() -> None:
    """The best and what is not apart from it, then the same of those that are left."""
    pairs = [pair(0, 1, 0.2), pair(0, 2, 0.01), pair(1, 2, 0.3)]
    assert tiers([30.0, 20.0, 10.0], pairs) == [1, 1, 2]
    assert tiers([10.0, 30.0, 20.0], [pair(0, 1, 0.01), pair(0, 2, 0.04), pair(1, 2, 0.001)]) == [3, 1, 2]
    assert tiers([1.0, 2.0], [pair(0, 1, None)]) == [1, 1]
    assert tiers([], []) == []


def test_no_question_is_an_error() -> None:
    with pytest.raises(ValueError, match="one row per question"):
        compare_all(np.zeros((0, 2)), [])
