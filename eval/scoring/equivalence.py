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

from eval.scoring.inference import ALPHA, POWER, t_quantile

Answer = Literal["reproduced", "not reproduced", "cannot say"]

#: Runs below which the spread is not estimated from the runs themselves.
MINIMUM_RUNS = 3
#: Number of runs beyond which no advice is given.
MOST_RUNS = 1_000
#: Float noise, far below any printed digit.
_NOISE = 1e-9


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
        reason: why it cannot be said.
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


def compare_with_printed(
    values: Sequence[float], printed: float, margin: float, *, deterministic: bool = False
) -> Equivalence:
    """Test whether runs agree with a printed number.

    Args:
        values: one per run, all on the same questions.
        printed: the paper's number, in the same unit.
        margin: largest difference that counts as none.
        deterministic: repeating the run gives the same value.
    """
    runs = len(values)
    difference = fsum(values) / runs - printed
    if deterministic:
        answer: Answer = "reproduced" if abs(difference) <= margin + _NOISE else "not reproduced"
        return Equivalence(answer, difference, margin, difference, difference, None, runs)
    if runs >= MINIMUM_RUNS:
        return _tested(difference, margin, runs, _deviation(values))
    needed = runs_needed(difference, margin, _deviation(values)) if runs > 1 else None
    few = "one run" if runs == 1 else f"{runs} runs"
    reason = f"{few} of a sampled setting: the spread from run to run is not known"
    return Equivalence("cannot say", difference, margin, None, None, None, runs, needed, reason)


def _deviation(values: Sequence[float]) -> float:
    """Return the standard deviation from run to run."""
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _tested(difference: float, margin: float, runs: int, deviation: float) -> Equivalence:
    from scipy.special import stdtr

    freedom, error = runs - 1, deviation / sqrt(runs)
    half = t_quantile(1 - ALPHA, freedom) * error
    low, high = difference - half, difference + half
    if error > 0:
        p_value = float(stdtr(freedom, (abs(difference) - margin) / error))
    else:
        p_value = 0.0 if abs(difference) <= margin + _NOISE else 1.0
    if -margin - _NOISE <= low and high <= margin + _NOISE:
        return Equivalence("reproduced", difference, margin, low, high, p_value, runs)
    if low > margin or high < -margin:
        return Equivalence("not reproduced", difference, margin, low, high, p_value, runs)
    needed = runs_needed(difference, margin, deviation)
    reason = "the spread from run to run is too wide for so few runs"
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
    """Return the power of a one-sided test whose bound is this many standard errors from the true difference."""
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, margins))


@cache
def _bounds() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of runs (from three), the bound's distance in standard errors, and degrees of freedom."""
    from scipy.special import stdtrit

    runs = np.arange(MINIMUM_RUNS, MOST_RUNS + 1, dtype=np.float64)
    return runs, np.asarray(stdtrit(runs - 1, 1 - ALPHA)), runs - 1
