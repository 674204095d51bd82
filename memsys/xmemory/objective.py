"""The guidance function that decides splits and merges (paper, equations 1 to 3).

``f(P) = SparsityScore(P) + SemScore(P)`` for a partition P of N facts into K themes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bell:
    """Width of the bell over nearest-neighbour similarities.

    Attributes:
        eps: added to the median absolute deviation. The paper leaves it open; the code takes 1e-8.
        sigma_floor: least width. 0 lets one outlier among equals score nothing (with three themes, always one).
    """

    eps: float
    sigma_floor: float


def sparsity(sizes: NDArray[np.int64] | Floats) -> float:
    """Return ``N^2 / (K * sum n_k^2)`` of theme sizes ``(K,)``, K at least 1 (equation 2).

    In (0, 1]; 1 exactly where all sizes are equal, whatever K is: it balances sizes and does not count themes.
    """
    counts = np.asarray(sizes, dtype=np.float64)
    return balance(len(counts), float(counts.sum()), float((counts * counts).sum()))


def balance(themes: int, facts: float, squares: float) -> float:
    """Return :func:`sparsity` of so many themes and facts, given the sum of the squares of the themes' sizes."""
    return facts * facts / (themes * squares)


def median(values: Floats) -> float:
    """Return the median of values ``(n,)``, n at least 1; ``np.median`` takes ten times as long for so few."""
    middle = len(values) // 2
    ordered = np.partition(values, middle if len(values) % 2 else (middle - 1, middle))
    return float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def neighbourhood_weights(nearest: Floats, bell: Bell) -> Floats:
    """Return ``g(s_k)`` of the similarities ``(K,)`` to each theme's nearest other theme (equation 3).

    ``g(s) = exp(-(s - m)^2 / (2 sigma^2))`` with ``m`` the median and ``sigma`` the median absolute deviation plus eps.
    """
    deviations = np.abs(nearest - median(nearest))
    sigma = max(median(deviations) + bell.eps, bell.sigma_floor)
    deviations /= sigma
    deviations *= deviations
    deviations *= -0.5
    weights: Floats = np.exp(deviations, out=deviations)
    return weights


def semantic_score(cohesion: Floats, nearest: Floats, bell: Bell) -> float:
    """Return the mean over themes of cohesion times ``g`` (equation 3).

    Args:
        cohesion: per theme the mean cosine of its facts with its centroid, ``(K,)``.
        nearest: per theme the cosine of its centroid with the nearest other centroid, ``(K,)``; 0 for a single theme.
        bell: width of ``g``.
    """
    return float(np.add.reduce(cohesion * neighbourhood_weights(nearest, bell))) / len(nearest)


def objective(sizes: NDArray[np.int64] | Floats, cohesion: Floats, nearest: Floats, bell: Bell) -> float:
    """Return ``f(P)`` (equation 1); 0 for no themes at all."""
    if not len(sizes):
        return 0.0
    return sparsity(sizes) + semantic_score(cohesion, nearest, bell)
