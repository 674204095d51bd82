"""Leiden communities of a weighted graph (Traag, Waltman and van Eck 2019), by graspologic-native.

The reference implementation (leidenalg, igraph) is under the GPL; graspologic-native is Microsoft's, under the MIT
licence, compiled, and gives the same communities for the same seed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Name of the library that finds communities, for the run's record.
BACKEND = "graspologic-native"

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected weighted graph over the nodes 0 to ``size - 1``.

    Attributes:
        size: number of nodes, isolated ones included.
        pairs: edges, shape (m, 2), the lower node first, each once, sorted.
        weights: positive, shape (m,).
    """

    size: int
    pairs: Numbers
    weights: NDArray[np.float64]

    def induced(self, nodes: Numbers) -> "Graph":
        """Return the graph among some nodes, which are numbered by their place in ``nodes`` (ascending)."""
        place = np.full(self.size, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        ends = place[self.pairs]
        inside = (ends >= 0).all(axis=1) if len(ends) else np.zeros(0, dtype=bool)
        return Graph(len(nodes), ends[inside], self.weights[inside])

    def adjacency(self) -> "Adjacency":
        """Return the edges by node."""
        heads = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        tails = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        order = np.lexsort((tails, heads))
        starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=self.size))])
        return Adjacency(starts.astype(np.int64), tails[order], np.concatenate([self.weights, self.weights])[order])


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A symmetric matrix in compressed rows: ``tails[starts[n]:starts[n + 1]]`` are the neighbours of node n."""

    starts: Numbers
    tails: Numbers
    weights: NDArray[np.float64]

    def of(self, node: int) -> tuple[Numbers, NDArray[np.float64]]:
        """Return a node's neighbours, ascending, and the weights of its edges to them."""
        row = slice(self.starts[node], self.starts[node + 1])
        return self.tails[row], self.weights[row]


def leiden(graph: Graph, *, resolution: float, randomness: float, iterations: int, seed: int) -> list[Numbers]:
    """Partition a graph by modularity.

    Returns:
        Communities as ascending node numbers, ordered by their lowest node; isolated nodes are communities of one.
    """
    if not len(graph.pairs):
        return [np.array([node], dtype=np.int64) for node in range(graph.size)]
    from graspologic_native import leiden_csr

    rows = graph.adjacency()
    _, label_of = leiden_csr(
        rows.starts,
        rows.tails.astype(np.int32),
        rows.weights,
        graph.size,
        resolution=resolution,
        randomness=randomness,
        iterations=iterations,
        use_modularity=True,
        seed=seed,
    )
    return grouped(np.array([label_of[node] for node in range(graph.size)], dtype=np.int64))


def grouped(labels: Numbers) -> list[Numbers]:
    """Collect nodes by label, groups ordered by their lowest node."""
    groups: dict[int, list[int]] = {}
    for node, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(node)
    return [np.array(members, dtype=np.int64) for members in groups.values()]
