"""FAISS's approximate indexes beside the exact vectors: they name candidates, which are then compared exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.settings import IndexSettings

Rows = NDArray[np.int64]


class ApproximateCandidates:
    """An HNSW or IVF index over the rows of a matrix; made with the first search that needs it.

    Rows that were replaced since are named with every search, until there are so many that the index is made anew.

    Args:
        settings: kind and parameters; not ``flat``.
        dimension: length of a vector.
    """

    def __init__(self, settings: IndexSettings, dimension: int) -> None:
        self._settings = settings
        self._dimension = dimension
        self._index: Any = None
        self._stale: set[int] = set()

    def searches(self, count: int) -> bool:
        """Whether an index of so many rows is searched approximately."""
        return count > self._settings.exact_below

    def append(self, block: Vectors) -> None:
        """Add rows to the index, if there is one."""
        if self._index is not None:
            self._index.add(block)

    def replaced(self, rows: Rows) -> None:
        """Note rows whose vectors changed."""
        if self._index is None:
            return
        self._stale.update(rows.tolist())
        if len(self._stale) > self._settings.exact_below:
            self.drop()

    def drop(self) -> None:
        """Forget the index: rows have other numbers now."""
        self._index = None
        self._stale.clear()

    def find(self, matrix: Vectors, query: NDArray[np.float32], count: int) -> Rows:
        """Rows that may be among the best ``count``, in no order.

        Args:
            matrix: all vectors, shape ``(n, dimension)``.
            query: unit vector ``(dimension,)``.
            count: how many to ask the index for; more come where rows were replaced.
        """
        if self._index is None:
            self._index = self._made(matrix)
        if self._settings.kind == "hnsw":
            self._index.hnsw.efSearch = max(self._settings.search_depth, count)
        found = self._index.search(query[None], count)[1][0]
        rows: Sequence[int] = [*(row for row in found.tolist() if row >= 0), *self._stale]
        return np.unique(np.array(rows, dtype=np.int64))

    def _made(self, matrix: Vectors) -> Any:
        import faiss

        settings, metric = self._settings, faiss.METRIC_INNER_PRODUCT
        faiss.omp_set_num_threads(1)
        index: Any
        if settings.kind == "hnsw":
            index = faiss.IndexHNSWFlat(self._dimension, settings.neighbours, metric)
            index.hnsw.efConstruction = settings.build_depth
        else:
            index = faiss.IndexIVFFlat(faiss.IndexFlatIP(self._dimension), self._dimension, settings.lists, metric)
            index.train(np.ascontiguousarray(matrix[: settings.exact_below]))
            index.nprobe = min(settings.probes, settings.lists)
        index.add(np.ascontiguousarray(matrix))
        return index
