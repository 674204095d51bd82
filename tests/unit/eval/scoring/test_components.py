"""Variance components: recovered from simulated designs, hand values, what a design detects."""

import numpy as np
import pytest
from scipy import stats

from eval.scoring.components import (
    Components,
    Design,
    conversations_needed,
    detectable,
    estimate_components,
    variance_of_mean,
)


def test_balanced_design_by_hand() -> None:
    """Two conversations of two questions, 0 2 and 4 6: within 2, between (2 * 2 * 4 - 2) / 2 = 7."""
    found = estimate_components(np.array([[0.0, 2.0, 4.0, 6.0]]), ["a", "a", "b", "b"])
    assert (found.question, found.conversation) == (2.0, 7.0)


def test_components_of_unequal_conversations_are_recovered() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 80, 60)
    number = np.repeat(np.arange(60), sizes)
    truth = Components(4.0, 9.0, 1.0, 2.0, 5.0)
    fixed = rng.normal(0, 2, 60)[number] + rng.normal(0, 3, len(number))
    runs = 60
    values = (
        fixed
        + rng.normal(0, 1, runs)[:, None]
        + rng.normal(0, np.sqrt(2), (runs, 60))[:, number]
        + rng.normal(0, np.sqrt(5), (runs, len(number)))
    )
    found = estimate_components(values, [str(each) for each in number])
    assert found.rest == pytest.approx(truth.rest, rel=0.05)
    assert found.run_conversation == pytest.approx(truth.run_conversation, rel=0.15)
    assert found.question == pytest.approx(truth.question, rel=0.1)
    assert found.conversation == pytest.approx(truth.conversation, rel=0.5)
    assert found.run == pytest.approx(truth.run, rel=0.5)


def test_variance_of_a_mean_by_hand() -> None:
    assert variance_of_mean(Components(4, 9, 1, 2, 5), Design(2, 3, 4)) == 4 / 2 + 9 / 6 + 1 / 4 + 2 / 8 + 5 / 24


def test_detectable_difference_is_the_t_formula() -> None:
    factor = stats.t.ppf(0.975, 9) + stats.t.ppf(0.8, 9)
    assert detectable(Components(1.0, 0.0), Design(10, 5)) == pytest.approx(factor * np.sqrt(0.1))


def test_needed_conversations_are_the_fewest() -> None:
    parts = Components(4.0, 400.0)
    needed = conversations_needed(parts, 2.0, 100, 1)
    assert needed is not None
    assert detectable(parts, Design(needed, 100)) <= 2.0 < detectable(parts, Design(needed - 1, 100))
    assert conversations_needed(Components(0.0, 1.0, run=4.0), 1.0, 100, 1, most=50) is None


def test_one_conversation_has_no_components_and_detects_nothing() -> None:
    with pytest.raises(ValueError, match="two conversations"):
        estimate_components(np.array([[0.0, 1.0]]), ["a", "a"])
    with pytest.raises(ValueError, match="one conversation"):
        detectable(Components(1.0, 1.0), Design(1, 100))
