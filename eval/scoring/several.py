"""Several systems on the same questions at once: means, and the paired difference of every two of them.

Intervals and p-values are those of :mod:`eval.scoring.clusters` and :mod:`eval.scoring.paired` for the plain mean over
questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eval.scoring.clusters import cluster_interval
from eval.scoring.inference import LEVEL, RESAMPLES, Floats, MetricScores, UnitKind, resampling_units
from eval.scoring.paired import holm, randomisation_p_value, win_tie_loss


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """System ``first`` minus system ``second``.

    Attributes:
        first: number of a system.
        second: number of a later system.
        value: difference of the means.
        low: end of its 95 % interval; ``None`` with fewer than two units.
        high: the other end.
        p_value: of the paired randomisation test, adjusted by Holm over all pairs; ``None`` with fewer than two units.
        gained: questions on which ``first`` scores higher.
        lost: questions on which it scores lower.
    """

    first: int
    second: int
    value: float
    low: float | None
    high: float | None
    p_value: float | None
    gained: int
    lost: int

    @property
    def separated(self) -> bool:
        """Whether chance is no likely explanation: adjusted p below 0.05."""
        return self.p_value is not None and self.p_value < 1 - LEVEL


@dataclass(frozen=True, slots=True)
class Several:
    """Systems on the same questions.

    Attributes:
        means: by system.
        intervals: 95 % interval by system; ``None`` with fewer than two units.
        differences: of every two systems, in the order of :func:`itertools.combinations`.
        by: what was drawn: conversations, or the questions of one.
        questions: how many.
    """

    means: tuple[float, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    differences: tuple[SystemDifference, ...]
    by: UnitKind
    questions: int


def compare_all(
    values: Floats,
    conversations: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    tested: int | None = None,
) -> Several:
    """Compare all systems with each other.

    Args:
        values: scores, shape (questions, systems), none missing.
        conversations: of each question.
        resamples: of the randomisation test, where not all sign patterns are visited.
        seed: of the same.
        tested: Holm's correction counts pairs of the first so many systems as one family, and the pairs with the
            others (references) as another; ``None`` makes one family of all.

    Raises:
        ValueError: no question, or the shapes differ.
    """
    if not len(values) or len(values) != len(conversations):
        raise ValueError("values need one row per question, and at least one")
    systems = values.shape[1]
    pairs = list(combinations(range(systems), 2))
    steps = [values[:, one] - values[:, other] for one, other in pairs]
    ends = intervals(np.column_stack([values, *steps]), conversations)
    tests = [randomisation_p_value(_scores(step, conversations), seed=seed, resamples=resamples) for step in steps]
    differences = [
        _difference(pair, steps[index], ends[systems + index], p_value)
        for index, (pair, p_value) in enumerate(zip(pairs, _adjusted(tests, pairs, tested), strict=True))
    ]
    means = tuple(float(one) for one in values.mean(axis=0))
    by, _ = resampling_units(conversations)
    return Several(means, tuple(ends[:systems]), tuple(differences), by, len(values))


def intervals(values: Floats, conversations: Sequence[str]) -> list[tuple[float, float] | None]:
    """95 % intervals of the plain means of several columns.

    Args:
        values: shape (questions, columns), none missing.
        conversations: of each question.

    Returns:
        Ends by column, those of :func:`eval.scoring.clusters.cluster_interval`; ``None`` with fewer than two units.
    """
    found = [cluster_interval(_scores(column, conversations)) for column in values.T]
    return [None if one is None else (one.low, one.high) for one in found]


def _scores(column: Floats, conversations: Sequence[str]) -> MetricScores:
    return MetricScores(column, tuple(conversations), np.zeros(len(column), dtype=np.int64))


def _difference(
    pair: tuple[int, int], steps: Floats, ends: tuple[float, float] | None, p_value: float | None
) -> SystemDifference:
    low, high = ends or (None, None)
    gained, _, lost = win_tie_loss(steps)
    return SystemDifference(*pair, float(steps.mean()), low, high, p_value, gained, lost)


def _adjusted(
    p_values: Sequence[float | None], pairs: Sequence[tuple[int, int]], tested: int | None
) -> list[float | None]:
    families: dict[bool, list[int]] = {}
    for index, (_, second) in enumerate(pairs):
        if p_values[index] is not None:
            families.setdefault(tested is None or second < tested, []).append(index)
    found = list(p_values)
    for members in families.values():
        own = [value for index in members if (value := p_values[index]) is not None]
        for index, value in zip(members, holm(own), strict=True):
            found[index] = value
    return found


def tiers(means: Sequence[float], differences: Sequence[SystemDifference]) -> list[int]:
    """Tier of each system from 1: the best that is left, and all that cannot be separated from it.

    Args:
        means: of the systems.
        differences: of at least every two of them.
    """
    apart = {frozenset((one.first, one.second)) for one in differences if one.separated}
    left = sorted(range(len(means)), key=lambda index: -means[index])
    found = [0] * len(means)
    tier = 0
    while left:
        tier += 1
        best = left[0]
        for index in left:
            if index == best or frozenset((best, index)) not in apart:
                found[index] = tier
        left = [index for index in left if not found[index]]
    return found
