"""Does a printed number reproduce on the same questions? An equivalence test against a stated margin.

Paper and re-run ask the same questions, so the variance that counts is that from run to run: seeds, sampling, batching.
It is zero where nothing is drawn. Two one-sided tests (TOST; Schuirmann 1987) decide whether the mean over runs lies
within the margin of the printed number, which is taken as fixed; the same two bounds tell when it lies outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eval.scoring.inference import t_quantile

Answer = Literal["reproduced", "not reproduced", "cannot say"]

LEVEL = 0.05
POWER = 0.8
#: Runs below which the spread is not estimated from the runs themselves.
MINIMUM_RUNS = 3
#: Number of runs beyond which no advice is given.
MOST_RUNS = 1_000
#: Float noise, far below any printed digit.
_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Spread:
    """A recorded run-to-run standard deviation.

    Attributes:
        deviation: in the unit of the values.
        runs: runs that it was estimated from.
        source: where it was recorded.
    """

    deviation: float
    runs: int
    source: str


@dataclass(frozen=True, slots=True)
class Equivalence:
    """A printed number compared with the runs of its cell.

    Attributes:
        answer: what the test says.
        difference: mean of the runs minus the printed number.
        margin: largest difference that counts as none.
        low: lower bound of the difference that the test rests on (90 % interval at level 5 %), ``None`` without spread.
        high: upper bound alike.
        p_value: of equivalence, the larger of the two one-sided tests; ``None`` without a spread, or with none at all.
        runs: how many there are.
        needed: runs that would decide with 80 % power, if the difference and the spread stay as they are; ``None``
            where the spread is not known, where they decide already, or where more than a thousand are needed.
        reason: why it cannot be said, or which spread was used.
    """

    answer: Answer
    difference: float
    margin: float
    low: float | None
    high: float | None
    p_value: float | None
    runs: int
    needed: int | None = None
    reason: str = ""


def margin_of(margin: float, half_unit: float) -> float:
    """Return the larger of the stated margin and the rounding error of the printed number."""
    return max(margin, half_unit)


def compare_with_printed(
    values: Sequence[float], printed: float, margin: float, *, deterministic: bool = False, spread: Spread | None = None
) -> Equivalence:
    """Test whether runs agree with a printed number.

    Args:
        values: one per run, all on the same questions.
        printed: the paper's number, in the same unit.
        margin: largest difference that counts as none.
        deterministic: repeating the run gives the same value.
        spread: recorded from run to run elsewhere; used where there are fewer than three runs.
    """
    difference = fsum(values) / len(values) - printed
    if deterministic:
        answer: Answer = "reproduced" if abs(difference) <= margin + _NOISE else "not reproduced"
        return Equivalence(answer, difference, margin, difference, difference, None, len(values))
    own = _own_spread(values)
    used = own if len(values) >= MINIMUM_RUNS else spread
    if used is None:
        return _unknown(difference, margin, len(values), own)
    return _tested(difference, margin, len(values), used)


def _own_spread(values: Sequence[float]) -> Spread | None:
    if len(values) < 2:
        return None
    mean = fsum(values) / len(values)
    return Spread(sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1)), len(values), "")


def _unknown(difference: float, margin: float, runs: int, own: Spread | None) -> Equivalence:
    needed = None if own is None else runs_needed(difference, margin, own.deviation)
    few = "one run" if runs == 1 else f"{runs} runs"
    reason = f"{few} of a sampled setting and no recorded spread from run to run"
    return Equivalence("cannot say", difference, margin, None, None, None, runs, needed, reason)


def _tested(difference: float, margin: float, runs: int, spread: Spread) -> Equivalence:
    from scipy.special import stdtr

    freedom, error = spread.runs - 1, spread.deviation / sqrt(runs)
    half = t_quantile(1 - LEVEL, freedom) * error
    low, high = difference - half, difference + half
    if error > 0:
        p_value = float(stdtr(freedom, (abs(difference) - margin) / error))
    else:
        p_value = 0.0 if abs(difference) <= margin + _NOISE else 1.0
    if -margin - _NOISE <= low and high <= margin + _NOISE:
        return Equivalence("reproduced", difference, margin, low, high, p_value, runs, reason=spread.source)
    if low > margin or high < -margin:
        return Equivalence("not reproduced", difference, margin, low, high, p_value, runs, reason=spread.source)
    needed = runs_needed(difference, margin, spread.deviation)
    reason = spread.source or "the spread from run to run is too wide for so few runs"
    return Equivalence("cannot say", difference, margin, low, high, p_value, runs, needed, reason)


def runs_needed(difference: float, margin: float, deviation: float) -> int | None:
    """Return the number of runs for 80 % power, given the true difference and spread.

    Within the margin both one-sided tests must reject, and near its middle either may fail. Their power is that of
    Student's t about the true difference, the chance that both fail at once left out (Phillips 1990).

    Returns:
        At least three; ``None`` where more than a thousand are needed.
    """
    distance = margin - abs(difference)
    if deviation == 0:
        return MINIMUM_RUNS if distance else None
    runs, bounds, freedom = _bounds()
    errors = deviation / np.sqrt(runs)
    power = _power(abs(distance) / errors - bounds, freedom)
    if distance > 0:
        power += _power((margin + abs(difference)) / errors - bounds, freedom) - 1
    enough = power >= POWER
    return int(runs[enough.argmax()]) if enough.any() else None


def _power(margins: NDArray[np.float64], freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the power of a one-sided test whose bound is so many standard errors from the true difference."""
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, margins))


@cache
def _bounds() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of runs (from three), the bound's distance in standard errors, and degrees of freedom."""
    from scipy.special import stdtrit

    runs = np.arange(MINIMUM_RUNS, MOST_RUNS + 1, dtype=np.float64)
    return runs, np.asarray(stdtrit(runs - 1, 1 - LEVEL)), runs - 1
