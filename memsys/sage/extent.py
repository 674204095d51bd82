"""The volume of a scope (SAGE, equation 2) without a pass over all memories for every write's scatter matrix."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.gate.vmf import VmfScope
from memsys.sage.threshold import largest_eigenpairs, ln_spans, ln_volume, one_blas_thread


class RunningVolume:
    """The volume of memories, of which the sum of outer products is kept up to date once they outnumber the components.

    Until then :func:`memsys.sage.threshold.ln_volume` takes no longer. The sum goes into snapshots: sums that were
    made in another order end in other bits.

    Args:
        components: directions that count.
        span_floor: least span of a direction.
    """

    def __init__(self, components: int, span_floor: float) -> None:
        self._components, self._span_floor = components, span_floor
        self._outer: NDArray[np.float64] | None = None  # lower triangle, shape (d, d)

    def added(self, vector: Vectors) -> None:
        """Add a memory's vector ``(d,)``."""
        self._update(1.0, vector)

    def replaced(self, old: Vectors, new: Vectors) -> None:
        """Replace a memory's vector ``(d,)``."""
        self._update(-1.0, old)
        self._update(1.0, new)

    def ln_volume(self, vectors: VmfScope) -> float:
        """Return ln V of a scope whose every change was noted here; see :func:`memsys.sage.threshold.ln_volume`."""
        count, dimension = len(vectors), len(vectors.total)
        if count <= dimension:
            return ln_volume(vectors.rows(), self._components, self._span_floor)
        with one_blas_thread():
            if self._outer is None:
                wide = vectors.rows().astype(np.float64)
                self._outer = np.asfortranarray(wide.T @ wide)
            scatter = self._outer - np.outer(vectors.total, vectors.total) / count
            _, directions = largest_eigenpairs(scatter, self._components)
            low, high = vectors.index.extremes(directions.T)
        return ln_spans(high - low, self._components, self._span_floor)

    def _update(self, weight: float, vector: Vectors) -> None:
        if self._outer is not None:
            from scipy.linalg.blas import dsyr

            with one_blas_thread():
                self._outer = dsyr(weight, vector.astype(np.float64), lower=1, a=self._outer, overwrite_a=1)

    def state(self) -> dict[str, Any]:
        """Return the snapshot: the lower triangle by rows, or nothing."""
        outer = self._outer
        return {"outer": None if outer is None else outer[np.tril_indices(len(outer))]}

    def load_state(self, state: Mapping[str, Any], dimension: int) -> None:
        """Restore a snapshot of vectors of ``dimension`` components."""
        self._outer = None
        if state.get("outer") is not None:
            self._outer = np.zeros((dimension, dimension), order="F")
            self._outer[np.tril_indices(dimension)] = state["outer"]
