"""The highest of many values, found without ordering all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Values of which the highest represents all; a pass over a million takes 0.2 ms so, to partition them takes 16 ms.
_BLOCK = 256


def near_highest(values: NDArray[np.floating[Any]], count: int, margin: float = 0.0) -> NDArray[np.int64]:
    """Return the places of the ``count`` highest values and of those within a margin of the last, ascending.

    All places where ``count`` is not between 0 and the number of values. No value is NaN.
    """
    if not 0 < count < len(values):
        return np.arange(len(values))
    return np.flatnonzero(values >= _last(values, count) - margin)


def best_rows(scores: NDArray[np.floating[Any]], count: int) -> NDArray[np.int64]:
    """Return the rows of the ``count`` highest scores, best first; ties go to the earlier row. No score is NaN."""
    if count <= 0:
        return np.arange(0)
    rows = np.arange(len(scores))
    if count < len(scores):
        last = _last(scores, count)
        above = np.flatnonzero(scores > last)
        rows = np.concatenate((above, np.flatnonzero(scores == last)[: count - len(above)]))
    return rows[np.lexsort((rows, -scores[rows]))]


def _last(values: NDArray[np.floating[Any]], count: int) -> np.floating[Any]:
    """Return the ``count``-th highest value, counting repeats.

    The highest values of this many blocks are this many values, so the least of them is no more than what is sought,
    and only values that reach it need to be looked at.
    """
    if count == 1:
        highest_of_all: np.floating[Any] = values.max()
        return highest_of_all
    if len(values) > count * _BLOCK:
        highest = np.maximum.reduceat(values, np.arange(0, len(values), _BLOCK))
        values = values[values >= _partitioned(highest, count)]
    return _partitioned(values, count)


def _partitioned(values: NDArray[np.floating[Any]], count: int) -> np.floating[Any]:
    last: np.floating[Any] = np.partition(values, len(values) - count)[len(values) - count]
    return last
