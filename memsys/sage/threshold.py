"""When a fact is new enough: the adaptive threshold and the routing rule (SAGE, section 3.4 and appendix D)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from typing import Any, Literal

import numpy as np

from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS

Action = Literal["add", "update", "noop"]
ThresholdMode = Literal["adaptive", "fixed"]

#: ``exp`` of minus more is below any threshold.
_LN_VANISHES = log(40.0)


def route(novelty: float, tau: float, delta: float) -> Action:
    """Route a fact: ``add`` from ``tau + delta`` on, ``update`` inside the band from ``tau``, ``noop`` below it.

    Compared rounded: cosines of float32 vectors are off by some 1e-8, and a novelty that is the threshold on paper is
    to be it here.
    """
    if round(novelty - tau - delta, SCORE_DECIMALS) >= 0:
        return "add"
    return "update" if round(novelty - tau, SCORE_DECIMALS) >= 0 else "noop"


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """The threshold, on the scale of the novelty.

    Attributes:
        mode: ``adaptive``, or ``fixed`` at ``tau_fixed``.
        tau_fixed: the fixed threshold; ``None`` for an adaptive one.
        tau_0: height of the decaying part (tau_0).
        tau_min: floor (tau_min).
        decay: of the threshold with density (lambda).
        alpha: momentum of the moving average; 0 for none.
        pca_components: directions that the volume is measured in (d').
        span_floor: least extent of a direction, missing ones included.
        volume_floor: least volume.
    """

    mode: ThresholdMode
    tau_fixed: float | None
    tau_0: float
    tau_min: float
    decay: float
    alpha: float
    pca_components: int
    span_floor: float
    volume_floor: float

    def ln_density(self, count: int, ln_volume: float) -> float | None:
        """Return ln of memories per volume; ``None`` for an empty scope, whose density is 0."""
        return log(count) - max(ln_volume, log(self.volume_floor)) if count else None

    def target(self, ln_density: float | None) -> float:
        """Return the unsmoothed threshold ``tau_min + tau_0 exp(-lambda rho)``, in log space: rho may be huge."""
        if ln_density is None:
            return self.tau_min + self.tau_0
        if self.decay == 0:
            return self.tau_min + self.tau_0
        ln_exponent = ln_density + log(self.decay)
        return self.tau_min + (self.tau_0 * exp(-exp(ln_exponent)) if ln_exponent < _LN_VANISHES else 0.0)

    def step(self, previous: float | None, target: float) -> float:
        """Return the next threshold: the moving average, which starts at the first target (equation 1)."""
        if self.mode == "fixed" and self.tau_fixed is not None:
            return self.tau_fixed
        return target if previous is None else self.alpha * previous + (1.0 - self.alpha) * target


def ln_volume(rows: Vectors, components: int, span_floor: float) -> float:
    """Measure the extent of memory vectors: the sum of ln of their spans along the first principal components.

    Args:
        rows: vectors, shape (n, d).
        components: how many directions count; those that n vectors do not have count with ``span_floor``.
        span_floor: least span of a direction.

    Returns:
        ln V (equation 2); 0 for fewer than two vectors.
    """
    count, dimension = rows.shape
    if count < 2:
        return 0.0
    wide = rows.astype(np.float64)
    centred = wide - wide.mean(axis=0)
    by_rows = count <= dimension
    with one_blas_thread():
        values, directions = largest_eigenpairs(centred @ centred.T if by_rows else centred.T @ centred, components)
        # Of the Gram matrix the eigenvectors, scaled, are the coordinates themselves.
        placed = directions * np.sqrt(np.maximum(values, 0.0)) if by_rows else centred @ directions
    return ln_spans(placed.max(axis=0) - placed.min(axis=0), components, span_floor)


def ln_spans(found: Any, components: int, span_floor: float) -> float:
    """Return the sum of ln of spans ``(k,)``; those that are missing to ``components`` count with ``span_floor``."""
    spans = np.zeros(components)
    spans[: len(found)] = found
    return float(np.log(np.maximum(spans, span_floor)).sum())


def largest_eigenpairs(matrix: Any, count: int) -> tuple[Any, Any]:
    """Return the largest eigenvalues (k,) of a symmetric matrix (m, m), whose lower triangle is read.

    With their vectors (m, k), k at most m.
    """
    from scipy.linalg import eigh

    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=[max(0, size - count), size - 1])
    return values, vectors


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: for matrices this small a thread team costs ten times what it saves."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _blas() -> Any:
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
