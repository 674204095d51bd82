"""Would a mean hold on other conversations? Intervals over conversations, and what variance the conversations add.

The error is the linearised one of a ratio of conversation totals, so that conversations of unequal size count by their
questions; the interval takes Student's t with one degree of freedom less than there are conversations. Over ten
conversations it covers what it promises, which a percentile bootstrap does not (``results/audit/coverage.md``).
"""

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


def cluster_interval(scores: MetricScores, mean: MeanRule = MICRO, *, level: float = LEVEL) -> Interval | None:
    """Cluster t interval of a mean over conversations.

    With one conversation there is no interval for others: the result then says ``by="question"`` and describes the
    questions of that conversation alone, as independent draws.

    Args:
        scores: of one metric, question by question.
        mean: how questions are averaged.
        level: confidence.

    Returns:
        The interval in the unit of the scores, or ``None`` where :func:`standard_error` has none.
    """
    error, units = standard_error(scores, mean)
    if error is None:
        return None
    half = t_quantile((1 + level) / 2, units - 1) * error
    middle = point(scores, mean)
    by, _ = resampling_units(scores.conversations)
    return Interval(middle - half, middle + half, level, by, units)


def standard_error(scores: MetricScores, mean: MeanRule = MICRO) -> tuple[float | None, int]:
    """Linearised standard error of a mean over conversations (over questions with one conversation).

    Returns:
        The error in the unit of the scores, and the number of units. There is no error with fewer than two units, nor
        where a category that the mean weighs by itself stands in one conversation alone: nothing then tells how other
        conversations differ in it, and its share of the error would be 0.
    """
    by, units = resampling_units(scores.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None, count
    totals = ScoreTotals.of(scores, units, mean)
    if by == "conversation" and np.any(np.count_nonzero(totals.counts, axis=0) == 1):
        return None, count
    shares = influence(totals)
    return float(np.sqrt(count / (count - 1) * np.sum((shares - shares.mean()) ** 2))), count


def influence(totals: ScoreTotals) -> Floats:
    """Contribution of each unit to the mean's deviation, shape (units,)."""
    questions = totals.counts.sum(axis=0)
    present = questions > 0
    sums, counts, questions = totals.sums[:, present], totals.counts[:, present], questions[present]
    shares = np.ones(1) if totals.weights is None else totals.weights[present] / totals.weights[present].sum()
    means = sums.sum(axis=0) / questions
    return np.asarray(((sums - counts * means) / questions) @ shares)
