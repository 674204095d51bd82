"""A mean with its uncertainty: the one place that tables, comparisons, the lens and the audit take it from."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.metrics.registry import METRICS
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import mean_of, metric_mean, score_name
from eval.scoring.clusters import cluster_interval
from eval.scoring.config import is_verdict
from eval.scoring.inference import MICRO, Interval, MeanRule, MetricScores, point
from eval.scoring.paired import minimum_detectable_difference
from eval.scoring.protocols import Averaging


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and what its uncertainty follows from.

    Attributes:
        value: the mean, in the unit.
        scores: question by question, as stored.
        rule: how the questions are averaged.
        unit: factor from the stored scores to the value: 100 for percent.
    """

    value: float
    scores: MetricScores
    rule: MeanRule = MICRO
    unit: float = 1.0

    @property
    def questions(self) -> int:
        """Questions that it is the mean over."""
        return len(self.scores.values)

    @property
    def interval(self) -> Interval | None:
        """95 % cluster t interval in the unit; see :func:`eval.scoring.clusters.cluster_interval`."""
        found = cluster_interval(self.scores, self.rule)
        return None if found is None else found.scaled(self.unit)

    @property
    def detectable(self) -> float | None:
        """Smallest true difference that so many conversations find with 80 % power, in the unit."""
        found = minimum_detectable_difference(self.scores, self.rule)
        return None if found is None else self.unit * found


def estimate(
    rows: Sequence[ScoreRow], metric: str, averaging: Averaging, category: int | None = None, unit: float = 1.0
) -> Estimate | None:
    """Return a metric's mean over the questions of a run; ``None`` where none was scored.

    Args:
        rows: scores of the run.
        metric: name of the scores.
        averaging: which questions count, and with what weight.
        category: question category, ``None`` for all that count.
        unit: factor from the stored scores to the value.
    """
    value = mean_value(rows, metric, category, averaging)
    return None if value is None else Estimate(unit * value, *scores_and_mean(rows, metric, category, averaging), unit)


def mean_of_scores(scores: MetricScores, rule: MeanRule = MICRO, unit: float = 1.0) -> Estimate | None:
    """Return the mean of scores; ``None`` where there is none."""
    return Estimate(unit * point(scores, rule), scores, rule, unit) if len(scores.values) else None


def mean_value(rows: Sequence[ScoreRow], metric: str, category: int | None, averaging: Averaging) -> float | None:
    """Return the mean of :mod:`eval.scoring.aggregate`; for latencies and sizes the plain mean over questions."""
    if is_verdict(metric):
        scores, mean = scores_and_mean(rows, metric, category, averaging)
        return point(scores, mean) if len(scores.values) else None
    if metric not in METRICS:
        return mean_of(row.metrics.get(metric) for row in rows if category in (None, row.category)).value
    found = metric_mean(rows, metric, averaging, category)
    return None if found is None else found.value


def scores_and_mean(
    rows: Sequence[ScoreRow], metric: str, category: int | None, averaging: Averaging
) -> tuple[MetricScores, MeanRule]:
    """Return the scored questions behind :func:`mean_value`, and the same mean in the form that resampling takes."""
    found = scored_rows(rows, metric, category, averaging)
    scores = MetricScores.of((value, row.conversation_id, row.category) for row, value in found)
    plain = category is not None or is_plain(metric)
    return scores, MICRO if plain else mean_rule(rows, averaging)


def scored_rows(
    rows: Sequence[ScoreRow], metric: str, category: int | None, averaging: Averaging
) -> list[tuple[ScoreRow, float]]:
    """Return the questions that enter a mean, with their scores, in the order of the rows.

    Args:
        rows: of a run.
        metric: name of the scores.
        category: question category, ``None`` for all that count.
        averaging: which questions count, and what is right in category 5.
    """
    found = []
    for row in rows:
        if row.category == category or (category is None and (is_plain(metric) or averaging.counts(row.kind))):
            value = row.metrics.get(score_name(metric, row.kind, averaging.adversarial))
            if value is not None:
                found.append((row, value))
    return found


def is_plain(metric: str) -> bool:
    """Return whether all questions count alike in every averaging: so for latencies and sizes."""
    return metric not in METRICS and not is_verdict(metric)


def mean_rule(rows: Sequence[ScoreRow], averaging: Averaging) -> MeanRule:
    """Return the overall mean in the form that resampling takes; categories are those of the rows that count."""
    if averaging.weighting == "question_mean":
        return MICRO
    return MeanRule(
        tuple((category, 1.0) for category in sorted({r.category for r in rows if averaging.counts(r.kind)}))
    )
