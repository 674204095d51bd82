"""Intervals and tests on per-question scores: questions of one conversation share a memory, so they are one draw.

Everything resamples *units*: conversations, or questions where only one conversation is there. Which of the two was
used is part of every result, because an interval over the questions of one conversation says nothing about another
conversation. All functions are deterministic; their random numbers depend on seed, units and resamples alone, so that
two systems on the same conversations meet the same resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memsys.seeding import generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UnitKind = Literal["conversation", "question"]

RESAMPLES = 10_000
LEVEL = 0.95
#: Rows of the resampling matrix multiplied at once: bounds memory at some 2000 units.
_CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class Scores:
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


@dataclass(frozen=True, slots=True)
class Mean:
    """How questions are averaged: ``weights=None`` every question alike, else category means by these weights.

    A category without a question (in the data or in one resample) is left out and the other weights are rescaled.
    """

    weights: tuple[tuple[int, float], ...] | None = None

    def columns(self, strata: Ints) -> tuple[Ints, Floats | None]:
        """Return the column of each question and the weights of the columns."""
        if self.weights is None:
            return np.zeros(len(strata), dtype=np.int64), None
        index = {category: column for column, (category, _) in enumerate(self.weights)}
        columns = np.array([index.get(int(category), -1) for category in strata], dtype=np.int64)
        return columns, np.array([weight for _, weight in self.weights], dtype=np.float64)


MICRO = Mean()


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval; ``by`` names the resampled units and ``units`` counts them."""

    low: float
    high: float
    level: float
    by: UnitKind
    units: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """System A against system B on the questions that both answered.

    Attributes:
        difference: mean of A minus mean of B.
        interval: percentile interval of the difference; ``None`` with fewer than two units.
        p_value: two-sided paired randomisation test; ``None`` with fewer than two units.
        wins: questions on which A scores higher; ``ties`` and ``losses`` alike.
        detectable: smallest true difference found with 80 % power at level 5 %; ``None`` with fewer than two units.
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


def resampling_units(conversations: Sequence[str]) -> tuple[UnitKind, Ints]:
    """Number the units: conversations in the order of their ids, or single questions when there is one conversation."""
    names = sorted(set(conversations))
    if len(names) > 1:
        number = {name: index for index, name in enumerate(names)}
        return "conversation", np.array([number[name] for name in conversations], dtype=np.int64)
    return "question", np.arange(len(conversations), dtype=np.int64)


@lru_cache(maxsize=8)
def multiplicities(units: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """Draw how often each unit occurs in each bootstrap resample; shape (resamples, units), rows sum to ``units``."""
    rng = generator("bootstrap", seed, units, resamples)
    counts = np.empty((resamples, units), dtype=np.uint16)
    for start in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - start)
        drawn = rng.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        counts[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)
    counts.setflags(write=False)
    return counts


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums and counts by unit and category: shape (units, categories) each; all a mean needs."""

    sums: Floats
    counts: Floats
    weights: Floats | None

    @classmethod
    def of(cls, scores: Scores, units: Ints, mean: Mean) -> "_Totals":
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
        """Mean under each row of multiplicities (shape (rows, units)); NaN for a row without any question."""
        parts = [
            _combine(block @ self.sums, block @ self.counts, self.weights)
            for block in (drawn[start : start + _CHUNK].astype(np.float64) for start in range(0, len(drawn), _CHUNK))
        ]
        return np.concatenate(parts)


def _combine(sums: Floats, counts: Floats, weights: Floats | None) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / counts
        if weights is None:
            return np.asarray(means[:, 0], dtype=np.float64)
        present = np.where(counts > 0, weights, 0.0)
        return np.asarray((np.where(counts > 0, means, 0.0) * present).sum(axis=1) / present.sum(axis=1))


def point(scores: Scores, mean: Mean = MICRO) -> float:
    """Mean of the scores; NaN when none counts."""
    if not len(scores.values):
        return float("nan")
    totals = _Totals.of(scores, np.zeros(len(scores.values), dtype=np.int64), mean)
    return float(totals.means(np.ones((1, 1)))[0])


def bootstrap_interval(
    scores: Scores, mean: Mean = MICRO, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Percentile bootstrap over conversations, or over questions when all belong to one conversation.

    Returns:
        The interval in the unit of the scores, or ``None`` with fewer than two units.
    """
    by, units = resampling_units(scores.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None
    drawn = _Totals.of(scores, units, mean).means(multiplicities(count, resamples, seed))
    tail = (1 - level) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return Interval(float(low), float(high), level, by, count)


def randomisation_p_value(
    differences: Scores, mean: Mean = MICRO, *, resamples: int = RESAMPLES, seed: int = 0
) -> float | None:
    """Two-sided paired randomisation test: which system is A is flipped for whole conversations (or questions).

    With at most ``log2(resamples)`` units all sign patterns are visited and the p-value is exact (ten conversations:
    1024 patterns, so none below 2/1024); otherwise signs are drawn and the observed pattern counts as one of them.
    """
    _, units = resampling_units(differences.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None
    exact = 2**count <= resamples if count < 63 else False
    signs = _all_signs(count) if exact else _drawn_signs(count, resamples, seed)
    totals = _Totals.of(differences, units, mean)
    everything = np.ones((1, count)) @ totals.counts
    flipped = np.concatenate(
        [
            _combine(
                block @ totals.sums, np.broadcast_to(everything, (len(block), everything.shape[1])), totals.weights
            )
            for block in (signs[start : start + _CHUNK] for start in range(0, len(signs), _CHUNK))
        ]
    )
    observed = abs(point(differences, mean))
    extreme = int(np.count_nonzero(np.abs(flipped) >= observed - 1e-12))
    return extreme / len(signs) if exact else (extreme + 1) / (len(signs) + 1)


def _all_signs(count: int) -> Floats:
    bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return np.asarray(1.0 - 2.0 * bits)


@lru_cache(maxsize=4)
def _drawn_signs(count: int, resamples: int, seed: int) -> Floats:
    bits = generator("randomisation", seed, count, resamples).integers(2, size=(resamples, count), dtype=np.int8)
    return np.asarray(1.0 - 2.0 * bits)


def minimum_detectable_difference(
    differences: Scores, mean: Mean = MICRO, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Smallest true difference a two-sided test at ``alpha`` finds with probability ``power``.

    ``(t(1-alpha/2) + t(power)) * standard error`` with units - 1 degrees of freedom (Bloom 1995). The standard error is
    the linearised one of a ratio of unit totals, so that conversations of unequal size count by their questions.
    """
    from scipy.stats import t as student

    _, units = resampling_units(differences.conversations)
    count = int(units.max()) + 1 if len(units) else 0
    if count < 2:
        return None
    totals = _Totals.of(differences, units, mean)
    influence = _influence(totals)
    error = float(np.sqrt(count / (count - 1) * np.sum((influence - influence.mean()) ** 2)))
    return float((student.ppf(1 - alpha / 2, count - 1) + student.ppf(power, count - 1)) * error)


def _influence(totals: _Totals) -> Floats:
    """Contribution of each unit to the mean's deviation, shape (units,)."""
    questions = totals.counts.sum(axis=0)
    present = questions > 0
    sums, counts, questions = totals.sums[:, present], totals.counts[:, present], questions[present]
    shares = np.ones(1) if totals.weights is None else totals.weights[present] / totals.weights[present].sum()
    means = sums.sum(axis=0) / questions
    return np.asarray(((sums - counts * means) / questions) @ shares)


def win_tie_loss(differences: Floats, tolerance: float = 1e-9) -> tuple[int, int, int]:
    """Count questions that A wins, ties and loses; differences up to ``tolerance`` are ties."""
    wins = int(np.count_nonzero(differences > tolerance))
    losses = int(np.count_nonzero(differences < -tolerance))
    return wins, len(differences) - wins - losses, losses


def compare_paired(differences: Scores, mean: Mean = MICRO, *, seed: int = 0, resamples: int = RESAMPLES) -> Comparison:
    """Compare two systems on the same questions.

    Args:
        differences: score of A minus score of B, question by question.
        mean: how questions are averaged.
        seed: of the resamples.
        resamples: how many.
    """
    wins, ties, losses = win_tie_loss(differences.values)
    return Comparison(
        difference=point(differences, mean),
        interval=bootstrap_interval(differences, mean, seed=seed, resamples=resamples),
        p_value=randomisation_p_value(differences, mean, seed=seed, resamples=resamples),
        wins=wins,
        ties=ties,
        losses=losses,
        detectable=minimum_detectable_difference(differences, mean),
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
