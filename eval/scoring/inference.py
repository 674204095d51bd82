"""Intervals on per-question scores: questions of one conversation share a memory, so they are one draw.

Everything resamples *units*: conversations, or questions where only one conversation is there. Which of the two was
used is part of every result, because an interval over the questions of one conversation says nothing about another
conversation. All functions are deterministic; their random numbers depend on seed, units and resamples alone, so that
two systems on the same conversations meet the same resamples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memsys.seeding import generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UnitKind = Literal["conversation", "question"]

#: Mark of every range over the questions of one conversation, in tables and figures.
BY_QUESTION = "‡"
ONE_CONVERSATION = (
    f"{BY_QUESTION} one conversation only: a range over its questions, not an interval for other conversations"
)

RESAMPLES = 10_000
#: Confidence of intervals.
LEVEL = 0.95
#: Level of tests: smaller p-values count as a difference.
ALPHA = 0.05
#: Probability with which a detectable difference is found.
POWER = 0.8
#: Rows of the resampling matrix multiplied at once: bounds memory at some 2000 units.
CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class MetricScores:
    """Scores of one metric, question by question, without the unscored ones.

    Attributes:
        values: shape (questions,), in the unit of the metric.
        conversations: conversation of each question.
        strata: question category of each question; used by stratified means.
    """

    values: Floats
    conversations: tuple[str, ...]
    strata: Ints

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.conversations) == len(self.strata):
            raise ValueError("values, conversations and strata differ in length")

    @classmethod
    def of(cls, scored: Iterable[tuple[float, str, int]]) -> "MetricScores":
        """Take value, conversation and stratum of each question."""
        rows = list(scored)
        return cls(
            np.array([value for value, _, _ in rows], dtype=np.float64),
            tuple(conversation for _, conversation, _ in rows),
            np.array([stratum for _, _, stratum in rows], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class MeanRule:
    """Averaging of questions: ``weights=None`` all alike, else category means by these weights.

    A category without a question (in the data or in one resample) is left out and the other weights are rescaled.
    """

    weights: tuple[tuple[int, float], ...] | None = None

    def columns(self, strata: Ints) -> tuple[Ints, Floats | None]:
        """Return the column of each question and the weights of the columns."""
        if self.weights is None:
            return np.zeros(len(strata), dtype=np.int64), None
        columns = np.full(len(strata), -1, dtype=np.int64)
        for column, (category, _) in enumerate(self.weights):
            columns[strata == category] = column
        return columns, np.array([weight for _, weight in self.weights], dtype=np.float64)


MICRO = MeanRule()


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval; ``by`` names the resampled units and ``units`` counts them."""

    low: float
    high: float
    level: float
    by: UnitKind
    units: int

    def scaled(self, factor: float) -> "Interval":
        """Convert to another unit."""
        return replace(self, low=factor * self.low, high=factor * self.high)

    def of_a_share(self, whole: float) -> "Interval":
        """Return the interval clipped to 0 to ``whole``, as shown; with few units it may reach beyond."""
        return replace(self, low=max(0.0, self.low), high=min(whole, self.high))


def resampling_units(conversations: Sequence[str]) -> tuple[UnitKind, Ints]:
    """Number the units: conversations in the order of their ids, or single questions when there is one conversation."""
    return _numbered_units(tuple(conversations))


@lru_cache(maxsize=64)
def _numbered_units(conversations: tuple[str, ...]) -> tuple[UnitKind, Ints]:
    """Return the units' numbers, cached, since all intervals and tests of a comparison use the same questions."""
    names = sorted(set(conversations))
    by: UnitKind = "conversation" if len(names) > 1 else "question"
    number = {name: index for index, name in enumerate(names)}
    units = np.array([number[name] for name in conversations], dtype=np.int64)
    units = units if by == "conversation" else np.arange(len(conversations), dtype=np.int64)
    units.setflags(write=False)
    return by, units


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t, by what ``scipy.stats`` calls, which takes two seconds to import."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def detectable_difference(error: float, freedom: float) -> float:
    """Return the smallest true difference that a two-sided test at :data:`ALPHA` finds with probability :data:`POWER`.

    ``(t(1-alpha/2) + t(power)) * error`` (Bloom 1995).

    Args:
        error: standard error of the difference.
        freedom: its degrees of freedom.
    """
    return (t_quantile(1 - ALPHA / 2, freedom) + t_quantile(POWER, freedom)) * error


@lru_cache(maxsize=8)
def multiplicities(units: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """Draw how often each unit occurs in each bootstrap resample; shape (resamples, units), rows sum to ``units``."""
    rng = generator("bootstrap", seed, units, resamples)
    counts = np.empty((resamples, units), dtype=np.uint16)
    for start in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - start)
        drawn = rng.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        counts[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)
    counts.setflags(write=False)
    return counts


@dataclass(frozen=True, slots=True)
class ScoreTotals:
    """Sums and counts by unit and category: shape (units, categories) each; all a mean needs."""

    sums: Floats
    counts: Floats
    weights: Floats | None

    @classmethod
    def of(cls, scores: MetricScores, units: Ints, mean: MeanRule) -> "ScoreTotals":
        """Add up scores; ``units`` gives the unit of each question."""
        columns, weights = mean.columns(scores.strata)
        width = 1 if weights is None else len(weights)
        shape = (int(units.max()) + 1, width)
        kept = columns >= 0
        cells = units[kept] * width + columns[kept]
        size = shape[0] * shape[1]
        sums = np.bincount(cells, weights=scores.values[kept], minlength=size).astype(np.float64)
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        return cls(sums.reshape(shape), counts.reshape(shape), weights)

    def means(self, drawn: NDArray[np.uint16] | Floats) -> Floats:
        """Return the mean under each row of multiplicities, shape (rows, units); NaN for a row without any question."""
        parts = [
            combine(block @ self.sums, block @ self.counts, self.weights)
            for block in (drawn[start : start + CHUNK].astype(np.float64) for start in range(0, len(drawn), CHUNK))
        ]
        return np.concatenate(parts)


def combine(sums: Floats, counts: Floats, weights: Floats | None) -> Floats:
    """Return the means from sums and counts by category, shape (rows, categories); NaN for a row without questions."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / counts
        if weights is None:
            return np.asarray(means[:, 0], dtype=np.float64)
        present = np.where(counts > 0, weights, 0.0)
        return np.asarray((np.where(counts > 0, means, 0.0) * present).sum(axis=1) / present.sum(axis=1))


def point(scores: MetricScores, mean: MeanRule = MICRO) -> float:
    """Return the mean of the scores; NaN when none counts."""
    if not len(scores.values):
        return float("nan")
    totals = ScoreTotals.of(scores, np.zeros(len(scores.values), dtype=np.int64), mean)
    return float(combine(totals.sums, totals.counts, totals.weights)[0])


def bootstrap_interval(
    scores: MetricScores, mean: MeanRule = MICRO, *, level: float = LEVEL, resamples: int = RESAMPLES
) -> Interval | None:
    """Return the percentile bootstrap over conversations, or over questions when all belong to one conversation.

    Returns:
        The interval in the unit of the scores, or ``None`` with fewer than two units.
    """
    by, units = resampling_units(scores.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None
    drawn = ScoreTotals.of(scores, units, mean).means(multiplicities(count, resamples, 0))
    tail = (1 - level) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return Interval(float(low), float(high), level, by, count)
