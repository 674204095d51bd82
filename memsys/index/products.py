"""Inner products of many vectors with one, without the threads of BLAS, and places of the highest values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors


def inner_products(rows: Vectors, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the inner products of contiguous rows ``(n, d)`` with a vector ``(d,)``: single precision, one thread."""
    import faiss

    query = np.ascontiguousarray(vector, dtype=np.float32)
    products = np.empty(len(rows), dtype=np.float32)
    if len(rows):
        native: Any = faiss
        found, sought, held = native.swig_ptr(products), native.swig_ptr(query), native.swig_ptr(rows)
        native.fvec_inner_products_ny(found, sought, held, rows.shape[1], len(rows))
    return products


def near_highest(values: NDArray[np.floating[Any]], count: int, margin: float = 0.0) -> NDArray[np.int64]:
    """Return the places of the ``count`` highest values and of those within a margin of the last, ascending.

    All places where ``count`` is not between 0 and the number of values.
    """
    if not 0 < count < len(values):
        return np.arange(len(values))
    last = values.max() if count == 1 else np.partition(values, len(values) - count)[len(values) - count]
    return np.flatnonzero(values >= last - margin)
