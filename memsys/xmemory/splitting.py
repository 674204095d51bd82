"""Ways to cut an overcrowded theme: candidates for a split, before any of them is scored."""

from collections.abc import Callable, Sequence

import numpy as np

from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS
from memsys.xmemory.objective import Floats

#: Rows of the theme, part by part; every row is in exactly one part.
Cutting = list[list[int]]


def cosines_between(vectors: Vectors) -> Floats:
    """Return the cosines of rows ``(n, d)`` with each other, ``(n, n)``, rounded."""
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    unit = wide / np.where(norms > 0, norms, 1.0)[:, None]
    cosines: Floats = np.round(np.einsum("ik,jk->ij", unit, unit), SCORE_DECIMALS)
    return cosines


def mean_pairwise(vectors: Vectors) -> float:
    """Return the mean cosine over all pairs of rows ``(n, d)``; 1 for a single row."""
    count = len(vectors)
    if count < 2:
        return 1.0
    upper = cosines_between(vectors)[np.triu_indices(count, 1)]
    return float(upper.mean())


def components(vectors: Vectors, *, edge: float, least: int, cap: int, cosines: Floats | None = None) -> Cutting:
    """Cut into connected components of the graph with an edge wherever the cosine is at least ``edge``.

    Args:
        vectors: rows ``(n, d)``.
        edge: least cosine of an edge.
        least: up to so many rows are one part, whatever their cosines.
        cap: a larger component is cut into runs of this length, in the order of a depth-first walk.
        cosines: of the rows with each other, where they are known.

    Returns:
        Components by their smallest row, which their walk begins with; the runs of one in the order of the walk.
    """
    if len(vectors) <= least:
        return [list(range(len(vectors)))]
    linked = (cosines_between(vectors) if cosines is None else cosines) >= edge
    left = set(range(len(vectors)))
    parts: Cutting = []
    while left:
        walk = _walk(min(left), linked)
        left.difference_update(walk)
        parts.extend(walk[start : start + cap] for start in range(0, len(walk), cap))
    return parts


def _walk(start: int, linked: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    """Visit a component depth first, the largest neighbour first, as the official code does."""
    seen: dict[int, None] = {}
    stack = [start]
    while stack:
        row = stack.pop()
        if row not in seen:
            seen[row] = None
            stack.extend(int(other) for other in np.flatnonzero(linked[row]) if int(other) not in seen)
    return list(seen)


def along_first_component(vectors: Vectors, *, cap: int) -> Cutting:
    """Sort rows ``(n, d)`` by their first principal component and cut them into runs of ``cap``."""
    wide = vectors.astype(np.float64)
    centred = wide - wide.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    axis = axis * (1.0 if axis[np.abs(axis).argmax()] >= 0 else -1.0)  # a sign is not determined by the data
    order = np.argsort(np.round(centred @ axis, SCORE_DECIMALS), kind="stable").tolist()
    return ordered([order[start : start + cap] for start in range(0, len(order), cap)])


def linkage_cuttings(cosines: Floats, counts: Sequence[int]) -> list[Cutting]:
    """Cut rows of known cosines ``(n, n)`` into at most so many parts, for each of the counts, by one linkage."""
    if len(cosines) < 2:
        return [[list(range(len(cosines)))] for _ in counts]
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = 1.0 - cosines
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(np.maximum(distances, 0.0)), "average")
    return [_labelled(fcluster(tree, count, "maxclust").tolist()) for count in counts]


def _labelled(labels: Sequence[int]) -> Cutting:
    """Return the parts, one for the rows of each label, by their smallest row."""
    parts: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        parts.setdefault(label, []).append(row)
    return list(parts.values())


def ordered(parts: Sequence[Sequence[int]]) -> Cutting:
    """Sort parts by their smallest row; rows keep their order within a part."""
    return sorted((list(part) for part in parts), key=min)


def distinct(cuttings: Sequence[Cutting]) -> list[Cutting]:
    """Leave out cuttings that group the rows as an earlier one does."""
    found: dict[frozenset[frozenset[int]], Cutting] = {}
    for cutting in cuttings:
        found.setdefault(frozenset(frozenset(part) for part in cutting), cutting)
    return list(found.values())


def best(cuttings: Sequence[Cutting], score: Callable[[Cutting], float]) -> Cutting:
    """Return the cutting of highest score; ties: the first."""
    scores = np.round([score(cutting) for cutting in cuttings], SCORE_DECIMALS)
    return cuttings[int(np.argmax(scores))]
