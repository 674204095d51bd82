"""A mean with its uncertainty: the one place that tables, comparisons, the lens and the audit take it from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from eval.metrics.registry import METRICS
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import Mean, combine
from eval.scoring.clusters import StandardError, cluster_interval, standard_error
from eval.scoring.columns import Flags, ScoreColumns, columns_of
from eval.scoring.config import is_verdict
from eval.scoring.inference import MICRO, Floats, Interval, Ints, MeanRule, MetricScores, point
from eval.scoring.paired import minimum_detectable_difference
from eval.scoring.protocols import Averaging


@dataclass(frozen=True)
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
        found = cluster_interval(self.scores, self.rule, self._error)
        return None if found is None else found.scaled(self.unit)

    @property
    def detectable(self) -> float | None:
        """Smallest true difference that this many conversations find with 80 % power, in the unit."""
        found = minimum_detectable_difference(self._error)
        return None if found is None else self.unit * found

    @cached_property
    def _error(self) -> StandardError | None:
        return standard_error(self.scores, self.rule)


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
    """Return the mean of scores; ``None`` if there is none."""
    return Estimate(unit * point(scores, rule), scores, rule, unit) if len(scores.values) else None


def mean_value(rows: Sequence[ScoreRow], metric: str, category: int | None, averaging: Averaging) -> float | None:
    """Return the mean of :mod:`eval.scoring.aggregate`; for latencies and sizes the plain mean over questions."""
    if is_verdict(metric):
        scores, mean = scores_and_mean(rows, metric, category, averaging)
        return point(scores, mean) if len(scores.values) else None
    columns = columns_of(rows)
    values, entering = columns.scores(metric, averaging.adversarial), _entering(columns, metric, category, averaging)
    if is_plain(metric):
        return plain_mean(values[entering]).value
    entering = entering & columns.counted(averaging)
    if category is not None:
        return plain_mean(values[entering]).value
    groups = [values[entering & (columns.categories == one)] for one in np.unique(columns.categories[entering])]
    return combine(list(map(plain_mean, groups)), averaging.weighting).value


def plain_mean(values: Floats) -> Mean:
    """Return the mean of scores; those that are NaN are unscored."""
    unscored = np.isnan(values)
    scored: list[float] = values[~unscored].tolist()
    return Mean(fsum(scored) / len(scored) if scored else None, len(scored), int(unscored.sum()))


def scores_and_mean(
    rows: Sequence[ScoreRow], metric: str, category: int | None, averaging: Averaging
) -> tuple[MetricScores, MeanRule]:
    """Return the scored questions behind :func:`mean_value`, and the same mean in the form that resampling takes."""
    columns = columns_of(rows)
    places, values = _scored(columns, metric, category, averaging)
    scores = MetricScores(values, tuple(columns.conversations[places]), columns.categories[places])
    plain = category is not None or is_plain(metric)
    return scores, MICRO if plain else mean_rule(columns, averaging)


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
    places, values = _scored(columns_of(rows), metric, category, averaging)
    return [(rows[place], value) for place, value in zip(places.tolist(), values.tolist(), strict=True)]


def _scored(columns: ScoreColumns, metric: str, category: int | None, averaging: Averaging) -> tuple[Ints, Floats]:
    """Return the places of the questions that enter a mean and have a score, and these scores."""
    values = columns.scores(metric, averaging.adversarial)
    places = np.flatnonzero(_entering(columns, metric, category, averaging) & ~np.isnan(values))
    return places, values[places]


def _entering(columns: ScoreColumns, metric: str, category: int | None, averaging: Averaging) -> Flags:
    """Return whether each question enters a mean where it is scored."""
    if category is not None:
        return np.asarray(columns.categories == category, dtype=np.bool_)
    return np.ones(len(columns), dtype=np.bool_) if is_plain(metric) else columns.counted(averaging)


def is_plain(metric: str) -> bool:
    """Return whether all questions count alike in every averaging: so for latencies and sizes."""
    return metric not in METRICS and not is_verdict(metric)


def mean_rule(rows: Sequence[ScoreRow], averaging: Averaging) -> MeanRule:
    """Return the overall mean in the form that resampling takes; categories are those of the rows that count."""
    if averaging.weighting == "question_mean":
        return MICRO
    columns = columns_of(rows)
    counted = np.unique(columns.categories[columns.counted(averaging)])
    return MeanRule(tuple((int(category), 1.0) for category in counted))
