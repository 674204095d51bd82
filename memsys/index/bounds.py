"""Rows that may be similar to a vector beyond a bound, told from a quarter of their numbers; none is missed.

A vector is drawn as its components along 95 fixed orthonormal directions and the length of what they leave of it. By
Cauchy and Schwarz the inner product of two vectors is no more than that of their drawings. With 384 components the
drawings of two unrelated vectors have a product of about 0.75, 0.03 more or less: a bound above it leaves few rows to
compare.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.products import inner_products

Rows = NDArray[np.int64]

_DIRECTIONS = 95
#: Lower bounds let too many rows of vectors with 384 components pass.
LEAST_USEFUL = 0.85
#: Bound of the error of a product of two drawings in single precision, four times over.
_MARGIN = (_DIRECTIONS + 9) * 2.0**-22
_CHUNK = 4096


class SimilarityBounds:
    """Drawings of the rows of a matrix, brought up to date by the search that needs them.

    Args:
        dimension: of the rows.
    """

    def __init__(self, dimension: int) -> None:
        self._directions = _orthonormal(dimension)
        self._drawn: Vectors = np.zeros((0, len(self._directions) + 1), dtype=np.float32)
        self._count = 0
        self._stale: set[int] = set()

    def replaced(self, rows: Rows) -> None:
        """Note rows whose vectors changed."""
        self._stale.update(row for row in rows.tolist() if row < self._count)

    def drop(self) -> None:
        """Forget all rows: they have other numbers now."""
        self._count = 0
        self._stale.clear()

    def at_least(self, matrix: Vectors, query: NDArray[np.float32], least: float) -> Rows:
        """Return the rows whose product with a query may reach a bound, ascending; all that reach it are among them.

        Args:
            matrix: all rows, ``(n, dimension)``; those that were drawn before are as they were then, or named stale.
            query: unit vector ``(dimension,)``.
            least: the bound.
        """
        self._draw_missing(matrix)
        products = inner_products(self._drawn[: self._count], self._draw(query[None])[0])
        return np.flatnonzero(products >= least - _MARGIN)

    def _draw_missing(self, matrix: Vectors) -> None:
        if self._stale:
            rows = np.array(sorted(self._stale), dtype=np.int64)
            self._drawn[rows] = self._draw(matrix[rows])
            self._stale.clear()
        if len(matrix) > len(self._drawn):
            room = np.zeros((max(len(matrix), 2 * len(self._drawn)), self._drawn.shape[1]), dtype=np.float32)
            room[: self._count] = self._drawn[: self._count]
            self._drawn = room
        for start in range(self._count, len(matrix), _CHUNK):
            block = matrix[start : start + _CHUNK]
            self._drawn[start : start + len(block)] = self._draw(block)
        self._count = len(matrix)

    def _draw(self, vectors: Vectors) -> Vectors:
        # In double precision: the length that is left is the root of a difference. einsum, as BLAS would start threads.
        wide = vectors.astype(np.float64)
        along = np.einsum("nj,ij->ni", wide, self._directions)
        left = np.einsum("nj,nj->n", wide, wide) - np.einsum("ni,ni->n", along, along)
        drawn: Vectors = np.column_stack([along, np.sqrt(np.maximum(left, 0.0))]).astype(np.float32)
        return drawn


@lru_cache(maxsize=4)
def _orthonormal(dimension: int) -> NDArray[np.float64]:
    """Return orthonormal rows, equal in every process: rows of the discrete cosine transform with random signs.

    They spread what few components hold, and cost no decomposition.
    """
    rng = np.random.default_rng(0)
    waves = rng.permutation(dimension)[:_DIRECTIONS, None]
    cosines = np.cos(np.pi / (2 * dimension) * ((2 * np.arange(dimension) + 1) * waves))
    lengths = np.where(waves == 0, 1.0, 2.0) / dimension
    directions: NDArray[np.float64] = np.sqrt(lengths) * cosines * rng.choice([-1.0, 1.0], dimension)
    return directions
