"""Distances and k-means."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS

#: Centroids are plain means, so squared L2 from a unit vector is ``1 + |c|^2 - 2 q.c``: it prefers broad clusters
#: (short centroids) to single notes; the cosine does not.
Metric = Literal["l2", "cosine"]


def nearest_rows(vector: Vectors, rows: Vectors, count: int) -> list[int]:
    """Return the ``count`` rows (n, d) of least Euclidean distance to ``vector`` (d,), nearest first."""
    differences = rows.astype(np.float64) - vector.astype(np.float64)
    distances = np.einsum("ij,ij->i", differences, differences)
    return [int(row) for row in np.argsort(np.round(distances, SCORE_DECIMALS), kind="stable")[:count]]


def kmeans(vectors: Vectors, clusters: int, *, seed: int, restarts: int) -> NDArray[np.int64]:
    """Partition rows by k-means.

    Args:
        vectors: rows, shape (n, d), n at least 1.
        clusters: wanted number of clusters; lowered to the number of distinct rows.
        seed: random state.
        restarts: number of initialisations, of which the best is kept.

    Returns:
        Labels 0..k-1, shape (n,); every label occurs.
    """
    distinct = len(np.unique(vectors, axis=0))
    if min(clusters, distinct) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    model = KMeans(n_clusters=min(clusters, distinct), random_state=seed, n_init=restarts)
    with threadpool_limits(1, user_api="openmp"):  # the order of partial sums must not depend on the machine
        labels = model.fit_predict(vectors.astype(np.float64))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def mean(rows: Vectors) -> Vectors:
    """Return the plain mean of rows, not normalised."""
    return np.asarray(rows.astype(np.float64).mean(axis=0), dtype=np.float32)


def groups(ids: Sequence[str], labels: NDArray[np.int64]) -> list[list[str]]:
    """Collect ids by label, in order of label and, within a label, of ``ids``."""
    result: list[list[str]] = [[] for _ in range(int(labels.max(initial=-1)) + 1)]
    for note_id, label in zip(ids, labels, strict=True):
        result[int(label)].append(note_id)
    return result
