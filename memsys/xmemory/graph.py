"""k-nearest-neighbour graphs: directed edges to the most similar nodes, best first."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.ranking import near_highest
from memsys.index.vector import SCORE_DECIMALS, VectorIndex

#: Node -> its neighbours with their cosines, best first; only positive cosines.
Graph = dict[str, list[tuple[str, float]]]

_BLOCK = 512


def fact_graph(ids: Sequence[str], vectors: Vectors, count: int) -> Graph:
    """Link every fact to its ``count`` nearest others.

    Args:
        ids: facts, oldest first.
        vectors: their unit vectors, ``(len(ids), d)``.
        count: k.
    """
    graph: Graph = {}
    wide = vectors.astype(np.float64)
    for start in range(0, len(ids), _BLOCK):
        cosines = np.round(wide[start : start + _BLOCK] @ wide.T, SCORE_DECIMALS)
        for offset, row in enumerate(cosines):
            row[start + offset] = -1.0
            graph[ids[start + offset]] = [(ids[other], float(row[other])) for other in _first(row, count)]
    return graph


def _first(row: NDArray[np.float64], count: int) -> list[int]:
    """Return the rows of the ``count`` highest positive values, best first; ties in order of age."""
    places = np.flatnonzero(row > 0)
    places = places[near_highest(row[places], count)]
    return [int(place) for place in places[np.argsort(-row[places], kind="stable")][:count]]


def newest_edges(index: VectorIndex, new: Sequence[str], count: int) -> Graph:
    """Link new facts to their nearest among all that are stored; older facts gain no edge."""
    graph: Graph = {}
    for fact_id, vector in zip(new, index.vectors(new), strict=True):
        found = index.search(vector, count + 1)
        near = [(other, round(cosine, SCORE_DECIMALS)) for other, cosine in found if other != fact_id]
        graph[fact_id] = [(other, cosine) for other, cosine in near if cosine > 0][:count]
    return graph


def graph_state(graph: Graph) -> dict[str, list[list[Any]]]:
    """Return a graph as JSON values."""
    return {node: [[other, cosine] for other, cosine in edges] for node, edges in graph.items()}


def graph_from(state: Mapping[str, Sequence[Sequence[Any]]]) -> Graph:
    """Make the graph that :func:`graph_state` described."""
    return {node: [(other, float(cosine)) for other, cosine in edges] for node, edges in state.items()}
