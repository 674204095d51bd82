"""Several systems on the same questions at once: means, and the paired difference of every two of them.

Intervals and p-values are those of :mod:`eval.scoring.inference` and :mod:`eval.scoring.paired` for the plain mean over
questions. All systems meet the same resamples, so one matrix product gives every interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eval.scoring.inference import LEVEL, RESAMPLES, Floats, Ints, UnitKind, multiplicities, resampling_units
from eval.scoring.paired import holm, sign_patterns


@dataclass(frozen=True, slots=True)
class Difference:
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
        by: what was resampled.
        questions: how many.
    """

    means: tuple[float, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    differences: tuple[Difference, ...]
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
        resamples: of the bootstrap and of the randomisation test.
        seed: of both.
        tested: Holm's correction counts pairs of the first so many systems as one family, and the pairs with the
            others (references) as another; ``None`` makes one family of all.

    Raises:
        ValueError: no question, or the shapes differ.
    """
    if not len(values) or len(values) != len(conversations):
        raise ValueError("values need one row per question, and at least one")
    by, units = resampling_units(conversations)
    count = int(units.max()) + 1
    pairs = list(combinations(range(values.shape[1]), 2))
    steps = np.stack([values[:, a] - values[:, b] for a, b in pairs], axis=1) if pairs else np.zeros((len(values), 0))
    ends: list[tuple[float, float] | None] = [None] * (values.shape[1] + len(pairs))
    p_values: list[float | None] = [None] * len(pairs)
    if count > 1:
        ends = list(_intervals(np.hstack([values, steps]), units, count, (resamples, seed)))
        p_values = list(_adjusted(_p_values(steps, units, count, (resamples, seed)), pairs, tested))
    known = ends[values.shape[1] :]
    differences = [
        _difference(pair, steps[:, index], known[index], p_values[index]) for index, pair in enumerate(pairs)
    ]
    means = tuple(float(one) for one in values.mean(axis=0))
    return Several(means, tuple(ends[: values.shape[1]]), tuple(differences), by, len(values))


def intervals(values: Floats, conversations: Sequence[str]) -> list[tuple[float, float]] | None:
    """95 % intervals of the plain means of several columns.

    Args:
        values: shape (questions, columns), none missing.
        conversations: of each question.

    Returns:
        Ends by column, those of :func:`eval.scoring.inference.bootstrap_interval`; ``None`` with fewer than two units.
    """
    _, units = resampling_units(conversations)
    count = int(units.max()) + 1 if len(units) else 0
    return _intervals(values, units, count, (RESAMPLES, 0)) if count > 1 else None


def category_means(
    values: Floats, conversations: Sequence[str], strata: Ints
) -> tuple[Floats, list[tuple[float, float]] | None]:
    """Means of the categories' means, every category alike, and their 95 % intervals.

    Args:
        values: shape (questions, columns), none missing.
        conversations: of each question.
        strata: category of each question. A category without a question in a resample is left out of it.

    Returns:
        Means by column, and the ends of their intervals; ``None`` with fewer than two units.
    """
    _, units = resampling_units(conversations)
    count = int(units.max()) + 1
    names = sorted(set(strata.tolist()))
    sums = np.stack([_unit_sums(np.where(strata[:, None] == name, values, 0.0), units, count) for name in names])
    sizes = np.stack([np.bincount(units[strata == name], minlength=count) for name in names]).astype(np.float64)
    means = _mean_of_categories(np.ones((1, count)), sums, sizes)[0]
    if count < 2:
        return means, None
    drawn = _mean_of_categories(multiplicities(count, RESAMPLES, 0).astype(np.float64), sums, sizes)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return means, [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _mean_of_categories(drawn: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Shape (resamples, columns), from sums (categories, units, columns) and sizes (categories, units)."""
    categories, count, columns = sums.shape
    totals = (drawn @ sums.transpose(1, 0, 2).reshape(count, -1)).reshape(len(drawn), categories, columns)
    asked = (drawn @ sizes.T)[:, :, None]
    means = np.divide(totals, asked, out=np.zeros_like(totals), where=asked > 0)
    return np.asarray(means.sum(axis=1) / (asked > 0).sum(axis=1))


def _difference(
    pair: tuple[int, int], steps: Floats, ends: tuple[float, float] | None, p_value: float | None
) -> Difference:
    low, high = ends or (None, None)
    gained, lost = int((steps > 1e-9).sum()), int((steps < -1e-9).sum())
    return Difference(*pair, float(steps.mean()), low, high, p_value, gained, lost)


def _unit_sums(values: Floats, units: Ints, count: int) -> Floats:
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, units, values)
    return sums


def _intervals(values: Floats, units: Ints, count: int, draw: tuple[int, int]) -> list[tuple[float, float]]:
    drawn = multiplicities(count, *draw).astype(np.float64)
    sizes = np.bincount(units, minlength=count).astype(np.float64)
    means = (drawn @ _unit_sums(values, units, count)) / (drawn @ sizes)[:, None]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _p_values(steps: Floats, units: Ints, count: int, draw: tuple[int, int]) -> list[float]:
    signs, exact = sign_patterns(count, *draw)
    sums = _unit_sums(steps, units, count)
    extreme = (np.abs(signs @ sums) >= np.abs(sums.sum(axis=0)) - 1e-12 * len(steps)).sum(axis=0)
    return [float(n / len(signs) if exact else (n + 1) / (len(signs) + 1)) for n in extreme]


def _adjusted(p_values: Sequence[float], pairs: Sequence[tuple[int, int]], tested: int | None) -> list[float]:
    families: dict[bool, list[int]] = {}
    for index, (_, second) in enumerate(pairs):
        families.setdefault(tested is None or second < tested, []).append(index)
    found = list(p_values)
    for members in families.values():
        for index, value in zip(members, holm([p_values[index] for index in members]), strict=True):
            found[index] = value
    return found


def tiers(means: Sequence[float], differences: Sequence[Difference]) -> list[int]:
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
