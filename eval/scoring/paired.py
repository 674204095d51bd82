"""Two systems on the same questions: paired differences, randomisation test, Holm's correction, detectable difference.

Units and resamples are those of :mod:`eval.scoring.inference`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eval.scoring.clusters import cluster_interval, standard_error
from eval.scoring.inference import (
    CHUNK,
    MICRO,
    RESAMPLES,
    Floats,
    Interval,
    MeanRule,
    MetricScores,
    ScoreTotals,
    combine,
    point,
    resampling_units,
    t_quantile,
)  # fmt: skip
from memsys.seeding import generator

#: Differences up to this count as none.
TIE = 1e-9
#: Level of a test: smaller p-values count as a difference.
ALPHA = 0.05
#: Sign patterns that are visited one by one.
EXACT = 2**16


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """System A against system B on the questions that both answered.

    Attributes:
        difference: mean of A minus mean of B.
        interval: cluster t interval of the difference; ``None`` with fewer than two units.
        p_value: two-sided paired randomisation test; ``None`` with fewer than two units.
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


def randomisation_p_value(
    differences: MetricScores, mean: MeanRule = MICRO, *, resamples: int = RESAMPLES, seed: int = 0
) -> float | None:
    """Two-sided paired randomisation test: which system is A is flipped for whole conversations (or questions).

    A unit on which the systems tie moves nothing when it is flipped and is left out of the patterns. With at most
    ``log2(EXACT)`` other units all sign patterns are visited and the p-value is exact (ten conversations: 1024
    patterns, so none below 2/1024). Over questions that all differ by the same amount it is the exact sign test.
    Otherwise signs are drawn, and the observed pattern counts as one of them.
    """
    _, units = resampling_units(differences.conversations)
    if not len(units) or int(units.max()) < 1:
        return None
    totals = ScoreTotals.of(differences, units, mean)
    moving = np.any(np.abs(totals.sums) > TIE, axis=1)
    sums, count = totals.sums[moving], int(moving.sum())
    sizes = np.unique(np.round(np.abs(sums), 9))
    if not count:
        return 1.0
    if totals.weights is None and len(sizes) == 1:
        return _sign_test(int(np.count_nonzero(sums > 0)), count)
    exact = 2**count <= EXACT if count < 63 else False
    signs = _all_signs(count) if exact else _drawn_signs(count, resamples, seed)
    everything = totals.counts.sum(axis=0, keepdims=True)
    flipped = np.concatenate(
        [
            combine(block @ sums, np.broadcast_to(everything, (len(block), everything.shape[1])), totals.weights)
            for block in (signs[start : start + CHUNK] for start in range(0, len(signs), CHUNK))
        ]
    )
    observed = abs(point(differences, mean))
    extreme = int(np.count_nonzero(np.abs(flipped) >= observed * (1 - TIE) - TIE * TIE))
    return extreme / len(signs) if exact else (extreme + 1) / (len(signs) + 1)


def _sign_test(wins: int, count: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(wins, count).pvalue)


@lru_cache(maxsize=8)
def _all_signs(count: int) -> Floats:
    bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return np.asarray(1.0 - 2.0 * bits)


@lru_cache(maxsize=4)
def _drawn_signs(count: int, resamples: int, seed: int) -> Floats:
    bits = generator("randomisation", seed, count, resamples).integers(2, size=(resamples, count), dtype=np.int8)
    return np.asarray(1.0 - 2.0 * bits)


def minimum_detectable_difference(
    differences: MetricScores, mean: MeanRule = MICRO, *, alpha: float = ALPHA, power: float = 0.8
) -> float | None:
    """Smallest true difference a two-sided test at ``alpha`` finds with probability ``power``.

    ``(t(1-alpha/2) + t(power)) * standard error`` (Bloom 1995), with the error and the degrees of freedom of
    :func:`eval.scoring.clusters.standard_error`.
    """
    error = standard_error(differences, mean)
    if error is None:
        return None
    return (t_quantile(1 - alpha / 2, error.freedom) + t_quantile(power, error.freedom)) * error.value


def _can_find(differences: MetricScores) -> bool:
    """Whether the randomisation test has enough units for any p-value below :data:`ALPHA`: of n it has 2^n patterns."""
    _, units = resampling_units(differences.conversations)
    return bool(len(units)) and 2.0 ** -int(units.max()) < ALPHA


def win_tie_loss(differences: Floats, tolerance: float = TIE) -> tuple[int, int, int]:
    """Count questions that A wins, ties and loses; differences up to ``tolerance`` are ties."""
    wins = int(np.count_nonzero(differences > tolerance))
    losses = int(np.count_nonzero(differences < -tolerance))
    return wins, len(differences) - wins - losses, losses


def compare_paired(
    differences: MetricScores, mean: MeanRule = MICRO, *, seed: int = 0, resamples: int = RESAMPLES
) -> PairedComparison:
    """Compare two systems on the same questions.

    Args:
        differences: score of A minus score of B, question by question.
        mean: how questions are averaged.
        seed: of the resamples.
        resamples: how many.
    """
    wins, ties, losses = win_tie_loss(differences.values)
    return PairedComparison(
        difference=point(differences, mean),
        interval=cluster_interval(differences, mean),
        p_value=randomisation_p_value(differences, mean, seed=seed, resamples=resamples),
        wins=wins,
        ties=ties,
        losses=losses,
        detectable=minimum_detectable_difference(differences, mean) if _can_find(differences) else None,
        questions=len(differences.values),
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p-values, in the order given (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)
