"""The clusters' centroids as one matrix, so that a route costs one product however many clusters there are."""

import numpy as np
from numpy.typing import NDArray

from memsys.clag.geometry import Metric
from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS


class Centroids:
    """Centroids in the order their clusters were made, in double precision, with room to grow."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._rows: NDArray[np.float64] = np.zeros((0, 0))
        self._squares: NDArray[np.float64] = np.zeros(0)

    def put(self, cluster_id: str, centroid: Vectors) -> None:
        """Append a cluster's centroid of shape (d,), or change it."""
        if cluster_id not in self._row_of:
            self._row_of[cluster_id] = len(self._ids)
            self._ids.append(cluster_id)
            self._make_room(len(centroid))
        row = self._row_of[cluster_id]
        self._rows[row] = centroid
        self._squares[row] = self._rows[row] @ self._rows[row]

    def drop(self, cluster_id: str) -> None:
        """Remove a cluster; the others keep their order."""
        row = self._row_of[cluster_id]
        self._rows = np.delete(self._rows, row, axis=0)
        self._squares = np.delete(self._squares, row)
        del self._ids[row]
        self._row_of = {kept: place for place, kept in enumerate(self._ids)}

    def nearest(self, vector: Vectors, count: int, metric: Metric) -> list[str]:
        """Return the ids of the ``count`` nearest centroids, nearest first; ties: oldest cluster first."""
        if not self._ids:
            return []
        wide = vector.astype(np.float64)
        squares, dots = self._squares[: len(self._ids)], self._rows[: len(self._ids)] @ wide
        distances = squares - 2 * dots if metric == "l2" else -cosine(dots, squares, float(wide @ wide))
        order = np.argsort(np.round(distances, SCORE_DECIMALS), kind="stable")[:count]
        return [self._ids[row] for row in order]

    def similarity(self, vector: Vectors, cluster_id: str) -> float:
        """Return the cosine of a vector (d,) with a cluster's centroid, rounded; 0 for a centroid at the origin."""
        wide, row = vector.astype(np.float64), self._row_of[cluster_id]
        dots = self._rows[row : row + 1] @ wide
        return float(np.round(cosine(dots, self._squares[row : row + 1], float(wide @ wide))[0], SCORE_DECIMALS))

    def _make_room(self, dimension: int) -> None:
        if len(self._ids) <= len(self._rows):
            return
        room = max(16, 2 * len(self._ids))
        rows, squares = np.zeros((room, dimension)), np.zeros(room)
        if len(self._rows):
            rows[: len(self._rows)], squares[: len(self._squares)] = self._rows, self._squares
        self._rows, self._squares = rows, squares


def cosine(dots: NDArray[np.float64], squares: NDArray[np.float64], square: float) -> NDArray[np.float64]:
    """Return cosines from dot products (n,), squared row norms (n,) and the query's squared norm."""
    norms = np.sqrt(squares * square)
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
