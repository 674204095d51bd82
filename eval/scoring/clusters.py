"""Would a mean hold on other conversations? Intervals over conversations, and what variance the conversations add.

The error is the linearised one of a ratio of conversation totals, so that conversations of unequal size count by their
questions; the interval takes Student's t with one degree of freedom less than there are conversations. Over ten
conversations it covers what it promises, which a percentile bootstrap does not (``results/audit/coverage.md``).

A mean of category means is a sum of such ratios. Each has the variance of its own few conversations, so each is
corrected for their number, and the degrees of freedom are Satterthwaite's for a sum of variances.
"""

from dataclasses import dataclass

import numpy as np

from eval.scoring.inference import (
    LEVEL,
    MICRO,
    Floats,
    Interval,
    MeanRule,
    MetricScores,
    ScoreTotals,
    point,
    resampling_units,
    t_quantile,
)


def cluster_interval(scores: MetricScores, mean: MeanRule, error: "StandardError | None") -> Interval | None:
    """Return the cluster t interval of a mean over conversations.

    With one conversation there is no interval for others: the result then says ``by="question"`` and describes the
    questions of that conversation alone, as independent draws.

    Args:
        scores: of one metric, question by question.
        mean: how questions are averaged.
        error: of that mean (:func:`standard_error`).

    Returns:
        The interval in the unit of the scores, or ``None`` without an error.
    """
    if error is None:
        return None
    half = t_quantile((1 + LEVEL) / 2, error.freedom) * error.value
    middle = point(scores, mean)
    by, _ = resampling_units(scores.conversations)
    return Interval(middle - half, middle + half, LEVEL, by, error.units)


@dataclass(frozen=True, slots=True)
class StandardError:
    """Standard error of a mean.

    Attributes:
        value: in the unit of the scores.
        freedom: degrees of freedom of its Student's t, at most ``units - 1``.
        units: conversations, or questions with one conversation.
    """

    value: float
    freedom: float
    units: int


def standard_error(scores: MetricScores, mean: MeanRule = MICRO) -> StandardError | None:
    """Return the linearised standard error of a mean over conversations (over questions with one conversation).

    Returns:
        ``None`` with fewer than two units, and where a category that the mean weighs by itself occurs in one unit
        alone: nothing then tells how others differ in it, and its share of the error would be 0.
    """
    _, units = resampling_units(scores.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None
    totals = ScoreTotals.of(scores, units, mean)
    shares = influence(totals)
    within = np.count_nonzero(totals.counts, axis=0)
    within = within[within > 0]
    if np.any(within < 2):
        return None
    shares = shares * np.sqrt(within / (within - 1))
    value = float(np.sqrt(np.sum(shares.sum(axis=1) ** 2)))
    return StandardError(value, min(count - 1.0, _freedom(np.sum(shares**2, axis=0), within - 1.0)), count)


def _freedom(variances: Floats, freedoms: Floats) -> float:
    """Return the degrees of freedom of a sum of separately estimated variances (Satterthwaite 1946)."""
    total = float(variances.sum())
    if total <= 0.0 or len(variances) == 1:
        return float(freedoms.min())
    return total**2 / float(np.sum(variances**2 / freedoms))


def influence(totals: ScoreTotals) -> Floats:
    """Return each unit's influence on the mean by category with questions, shape (units, categories)."""
    questions = totals.counts.sum(axis=0)
    present = questions > 0
    sums, counts, questions = totals.sums[:, present], totals.counts[:, present], questions[present]
    shares = np.ones(1) if totals.weights is None else totals.weights[present] / totals.weights[present].sum()
    means = sums.sum(axis=0) / questions
    return np.asarray((sums - counts * means) / questions * shares)
