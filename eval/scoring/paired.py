"""Two systems on the same questions: paired differences, randomisation test, Holm's correction, detectable difference.

Units and resamples are those of :mod:`eval.scoring.inference`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.scoring.clusters import StandardError, cluster_interval, standard_error
from eval.scoring.inference import (
    ALPHA,
    MICRO,
    Floats,
    Interval,
    MeanRule,
    MetricScores,
    detectable_difference,
    point,
    resampling_units,
)
from eval.scoring.randomisation import TIE, randomisation_test


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """System A against system B on the questions that both answered.

    Attributes:
        difference: mean of A minus mean of B.
        interval: cluster t interval of the difference; ``None`` with fewer than two units.
        p_value: two-sided paired randomisation test; ``None`` with fewer than two units.
        p_error: standard error of a p-value that was estimated by drawing, 0 of an exact one.
        wins: questions on which A scores higher; ``ties`` and ``losses`` alike.
        detectable: smallest true difference found with 80 % power at level 5 %; ``None`` with fewer than six units,
            with which the test finds none.
        questions: number of questions compared.
    """

    difference: float
    interval: Interval | None
    p_value: float | None
    wins: int
    ties: int
    losses: int
    detectable: float | None
    questions: int
    p_error: float = 0.0


def minimum_detectable_difference(error: StandardError | None) -> float | None:
    """Return the smallest difference found with the standard error of a difference; ``None`` without one."""
    return None if error is None else detectable_difference(error.value, error.freedom)


def _can_find(differences: MetricScores) -> bool:
    """Return whether n units suffice for a p-value below :data:`ALPHA`: the test has 2^n sign patterns."""
    _, units = resampling_units(differences.conversations)
    return bool(len(units)) and 2.0 ** -int(units.max()) < ALPHA


def win_tie_loss(differences: Floats) -> tuple[int, int, int]:
    """Count questions that A wins, ties and loses; differences up to :data:`TIE` are ties."""
    wins = int(np.count_nonzero(differences > TIE))
    losses = int(np.count_nonzero(differences < -TIE))
    return wins, len(differences) - wins - losses, losses


def compare_paired(differences: MetricScores, mean: MeanRule = MICRO) -> PairedComparison:
    """Compare two systems on the same questions.

    Args:
        differences: score of A minus score of B, question by question.
        mean: how questions are averaged.
    """
    wins, ties, losses = win_tie_loss(differences.values)
    error = standard_error(differences, mean)
    test = randomisation_test(differences, mean)
    return PairedComparison(
        difference=point(differences, mean),
        interval=cluster_interval(differences, mean, error),
        p_value=None if test is None else test.value,
        wins=wins,
        ties=ties,
        losses=losses,
        detectable=minimum_detectable_difference(error) if _can_find(differences) else None,
        questions=len(differences.values),
        p_error=0.0 if test is None else test.error,
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's step-down adjusted p-values, in the order given (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)
