"""FAISS's approximate indexes next to the exact vectors: they name candidates, which are then compared exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.settings import IndexSettings

Rows = NDArray[np.int64]


class ApproximateCandidates:
    """An HNSW or IVF index over the rows of a matrix; made with the first search that needs it.

    IVF moves a row that is replaced to its new cell, and takes out one that is removed. HNSW can do neither: rows that
    were replaced are named with every search, until there are so many that the index is made again.

    Args:
        settings: kind and parameters; not ``flat``.
        dimension: length of a vector.
    """

    def __init__(self, settings: IndexSettings, dimension: int) -> None:
        self._settings = settings
        self._dimension = dimension
        self._index: Any = None
        self._stale: set[int] = set()
        self._rows = 0

    @property
    def changes(self) -> bool:
        """Whether single rows can be moved and taken out."""
        return self._settings.kind == "ivf"

    def searches(self, count: int) -> bool:
        """Return whether an index of this many rows is searched approximately."""
        return count > self._settings.exact_below

    def append(self, block: Vectors) -> None:
        """Add rows to the index, if there is one."""
        if self._index is not None:
            self._add(block, np.arange(self._rows, self._rows + len(block)))
            self._rows += len(block)

    def replaced(self, rows: Rows, vectors: Vectors) -> None:
        """Give rows, each named once, new vectors, shape ``(len(rows), dimension)``."""
        if self._index is None:
            return
        if self.changes:
            self._index.update_vectors(rows, np.ascontiguousarray(vectors, dtype=np.float32))
            return
        self._stale.update(rows.tolist())
        if len(self._stale) > self._settings.exact_below:
            self.drop()

    def removed(self, rows: Rows) -> None:
        """Take rows out; the others keep their numbers. For an index that :attr:`changes`."""
        import faiss

        if self._index is not None:
            self._index.remove_ids(faiss.IDSelectorArray(len(rows), faiss.swig_ptr(rows)))

    def drop(self) -> None:
        """Forget the index: rows have other numbers now."""
        self._index = None
        self._stale.clear()

    def find(self, matrix: Vectors, gaps: Sequence[int], query: NDArray[np.float32], count: int) -> Rows:
        """Return the rows that may be among the best ``count``, in no order.

        Args:
            matrix: all vectors, shape ``(n, dimension)``.
            gaps: its rows that hold none, ascending.
            query: unit vector ``(dimension,)``.
            count: how many to ask the index for; more come where rows were replaced.
        """
        if self._index is None:
            self._make(matrix, gaps)
        if self._settings.kind == "hnsw":
            self._index.hnsw.efSearch = max(self._settings.search_depth, count)
        found = self._index.search(query[None], count)[1][0]
        rows: Sequence[int] = [*(row for row in found.tolist() if row >= 0), *self._stale]
        return np.unique(np.array(rows, dtype=np.int64))

    def _make(self, matrix: Vectors, gaps: Sequence[int]) -> None:
        import faiss

        rows = np.delete(np.arange(len(matrix)), gaps)
        vectors = matrix[rows] if gaps else matrix  # no copy of all vectors where there need be none
        library: Any = faiss  # its type information does not know all of it
        settings, metric = self._settings, faiss.METRIC_INNER_PRODUCT
        faiss.omp_set_num_threads(1)
        if settings.kind == "hnsw":
            self._index = faiss.IndexHNSWFlat(self._dimension, settings.neighbours, metric)
            self._index.hnsw.efConstruction = settings.build_depth
        else:
            cells = faiss.IndexFlatIP(self._dimension)
            self._index = faiss.IndexIVFFlat(cells, self._dimension, settings.lists, metric)
            self._index.train(np.ascontiguousarray(vectors[: settings.exact_below]))
            self._index.nprobe = min(settings.probes, settings.lists)
            self._index.set_direct_map_type(library.DirectMap.Hashtable)  # where each row is, so that it can be moved
        self._add(vectors, rows)
        self._rows = len(matrix)

    def _add(self, vectors: Vectors, rows: Rows) -> None:
        block = np.ascontiguousarray(vectors, dtype=np.float32)
        if self.changes:
            self._index.add_with_ids(block, rows)
        else:
            # One by one, as a run adds them: FAISS orders a block by level, so that a resumed run, which adds all that
            # is stored at once, would have another graph.
            for row in block:
                self._index.add(row[None])  # numbered in the order of their coming, without gaps
