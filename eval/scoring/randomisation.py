"""The paired randomisation test: how often random signs of the units' differences give a mean as far from 0.

Flipping which system is A for a whole unit (a conversation, or a question of the only one) turns the sign of that
unit's part of the difference of means, whatever the mean's weights. So the test is about one vector of parts and the
distribution of their sum under random signs. It is computed exactly where that can be enumerated: up to
:data:`EXACT_UNITS` parts by two halves (Horowitz and Sahni 1974), more of them on a common grid by convolution.
Elsewhere signs are drawn, at least a million times, and the standard error of that is part of the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eval.scoring.inference import MICRO, Floats, Ints, MeanRule, MetricScores, ScoreTotals, resampling_units
from memsys.seeding import generator

#: Differences up to this count as none.
TIE = 1e-9
#: Parts of which all sign patterns are counted: two halves of at most 2**18 sums.
EXACT_UNITS = 36
#: Patterns that are drawn where they cannot be counted.
DRAWS = 1_000_000
#: Most steps of a grid, and the largest denominator that one is looked for with.
GRID_STEPS, GRID_PARTS = 1 << 16, 60
#: Sums within this share of the largest possible one are equal: committed scores have six decimals.
_EQUAL = 1e-6
#: Signs in a word, and draws that are added up at once.
_WORD, _BLOCK = 16, 1 << 17
_Float = TypeVar("_Float", np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class PValue:
    """A p-value; ``error`` is the standard error of its estimation by drawing, 0 where it is exact."""

    value: float
    error: float = 0.0


def randomisation_test(differences: MetricScores, mean: MeanRule = MICRO, *, seed: int = 0) -> PValue | None:
    """Return the p-value of the paired two-sided randomisation test of means; ``None`` with fewer than two units.

    Args:
        differences: score of A minus score of B, question by question.
        mean: how questions are averaged.
        seed: of the :data:`DRAWS` sign patterns that are drawn where not all can be counted, the same in every test.
    """
    _, units = resampling_units(differences.conversations)
    if not len(units) or int(units.max()) < 1:
        return None
    parts = _parts(ScoreTotals.of(differences, units, mean))
    sizes = np.abs(parts[parts != 0])
    reached = abs(float(parts.sum())) - _EQUAL * float(sizes.sum())
    if reached <= 0:
        return PValue(1.0)
    if len(sizes) <= EXACT_UNITS:
        return PValue(_counted(sizes, reached))
    steps = _on_a_grid(sizes)
    if steps is not None:
        return PValue(_convolved(steps, reached / float(sizes.sum()) * int(steps.sum())))
    return _drawn(sizes, reached, DRAWS, seed)


def _parts(totals: ScoreTotals) -> Floats:
    """Return each unit's part of the difference of means, shape (units,); 0 for ties."""
    questions = totals.counts.sum(axis=0)
    weights = np.ones(len(questions)) if totals.weights is None else totals.weights
    shares = np.where(questions > 0, weights / np.maximum(questions, 1), 0.0) / weights[questions > 0].sum()
    moving = np.any(np.abs(totals.sums) > TIE, axis=1)
    return np.asarray(np.where(moving, totals.sums @ shares, 0.0))


def _counted(sizes: Floats, reached: float) -> float:
    """Return the share of sign patterns with a sum as far from 0, by combining the sums of two halves."""
    half = len(sizes) // 2
    ordered = np.sort(_all_sums(sizes[:half]))
    beyond = len(ordered) - np.searchsorted(ordered, reached - np.sort(_all_sums(sizes[half:])))
    return 2.0 * int(beyond.sum()) / 2.0 ** len(sizes)


def _all_sums(sizes: Floats) -> Floats:
    """Return the sum of the sizes under every pattern of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _on_a_grid(sizes: Floats) -> Ints | None:
    """Return the sizes as multiples of one step; ``None`` where no such step exists."""
    multiples = sizes / sizes.min() * np.arange(1, GRID_PARTS + 1)[:, None]
    fits = np.flatnonzero(np.all(np.abs(multiples - np.round(multiples)) < 1e-3, axis=1))
    if not len(fits):
        return None
    steps = np.round(multiples[fits[0]]).astype(np.int64)
    return steps if steps.sum() <= GRID_STEPS else None


def _convolved(steps: Ints, reached: float) -> float:
    """Return the probability that a sum of integers with random signs is as far from 0, by convolution."""
    chances = np.zeros(int(steps.sum()) + 1)  # of the sum of those with a plus
    chances[0] = 1.0
    for step in steps.tolist():
        chances *= 0.5
        chances[step:] += chances[:-step].copy()
    least = int(np.ceil((reached + len(chances) - 1) / 2))
    return min(1.0, 2.0 * float(chances[least:].sum()))


def _drawn(sizes: Floats, reached: float, draws: int, seed: int) -> PValue:
    """Return the estimate from random signs, sixteen at a time looked up by the bits of a word.

    Sums that single precision cannot compare with what was reached are added up again in double precision.
    """
    chunks = [sizes[place : place + _WORD] for place in range(0, len(sizes), _WORD)]
    tables = [np.tile(_all_sums(chunk), 1 << (_WORD - len(chunk))) for chunk in chunks]  # a short one ignores bits
    near = [table.astype(np.float32) for table in tables]
    rounded = 2 * len(tables) * float(np.finfo(np.float32).eps) * float(sizes.sum())
    words = [_words(number, draws, seed) for number in range(len(chunks))]
    extreme = 0
    for start in range(0, draws, _BLOCK):
        drawn = [of_word[start : start + _BLOCK] for of_word in words]
        far = np.abs(_sums(near, drawn))  # in half the time, as single precision's tables fit the cache
        undecided = np.flatnonzero(np.abs(far - reached) <= rounded)
        far[undecided] = 0
        exact = np.abs(_sums(tables, [of_word[undecided] for of_word in drawn]))
        extreme += int(np.count_nonzero(far > reached)) + int(np.count_nonzero(exact >= reached))
    share = (extreme + 1) / (draws + 1)
    return PValue(share, float(np.sqrt(share * (1 - share) / draws)))


def _sums(tables: Sequence[NDArray[_Float]], words: Sequence[NDArray[np.uint16]]) -> NDArray[_Float]:
    """Return the sum of each draw.

    Args:
        tables: of each word, the sum of its sizes under each pattern of signs.
        words: the drawn patterns, shape (draws,) each.
    """
    sums = tables[0].take(words[0])
    for table, drawn in zip(tables[1:], words[1:], strict=True):
        sums += table.take(drawn)
    return sums


@lru_cache(maxsize=16)
def _words(number: int, draws: int, seed: int) -> NDArray[np.uint16]:
    """Return the random signs of sixteen units, cached, since all tests of a comparison reuse them."""
    return generator("randomisation", seed, number, draws).integers(1 << _WORD, size=draws, dtype=np.uint16)
