"""Two systems on the same questions: paired differences, randomisation test, Holm's correction, detectable difference.

Units and resamples are those of :mod:`eval.scoring.inference`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eval.scoring.inference import (
    CHUNK,
    MICRO,
    RESAMPLES,
    Floats,
    Interval,
    Mean,
    Scores,
    Totals,
    bootstrap_interval,
    combine,
    point,
    resampling_units,
)  # fmt: skip
from memsys.seeding import generator


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
    signs, exact = sign_patterns(count, resamples, seed)
    totals = Totals.of(differences, units, mean)
    everything = np.ones((1, count)) @ totals.counts
    flipped = np.concatenate(
        [
            combine(block @ totals.sums, np.broadcast_to(everything, (len(block), everything.shape[1])), totals.weights)
            for block in (signs[start : start + CHUNK] for start in range(0, len(signs), CHUNK))
        ]
    )
    observed = abs(point(differences, mean))
    extreme = int(np.count_nonzero(np.abs(flipped) >= observed - 1e-12))
    return extreme / len(signs) if exact else (extreme + 1) / (len(signs) + 1)


def sign_patterns(count: int, resamples: int, seed: int) -> tuple[Floats, bool]:
    """Signs of each unit in each pattern, shape (patterns, units), and whether these are all patterns there are."""
    exact = 2**count <= resamples if count < 63 else False
    return (_all_signs(count) if exact else _drawn_signs(count, resamples, seed)), exact


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
    totals = Totals.of(differences, units, mean)
    influence = _influence(totals)
    error = float(np.sqrt(count / (count - 1) * np.sum((influence - influence.mean()) ** 2)))
    return float((student.ppf(1 - alpha / 2, count - 1) + student.ppf(power, count - 1)) * error)


def _influence(totals: Totals) -> Floats:
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
