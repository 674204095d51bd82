"""Topics: communities of keywords that occur together, their sizes bounded (paper, 3.3.3, equation 10)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.products import inner_products
from memsys.index.ranking import near_highest
from memsys.index.vector import SCORE_DECIMALS
from memsys.memfly.communities import Graph, Numbers, grouped, leiden
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.rules import TopicRules

#: Twice the error of a product in single precision, and the rounding to six decimals; far above both.
_MARGIN = 1e-5


@dataclass(frozen=True, slots=True)
class Topics:
    """A partition of the keywords.

    Attributes:
        members: per topic its keyword numbers, ascending; topics are ordered by their lowest keyword.
        centroids: unit vectors, shape (topics, d).
    """

    members: tuple[Numbers, ...]
    centroids: Vectors

    def nearest(self, vector: Vectors, count: int) -> list[int]:
        """Return the ``count`` topics whose centroids are most similar to a unit vector (d,); ties: lower number.

        Sought in single precision, within the bound of its error, and compared in double precision.
        """
        rows = near_highest(inner_products(self.centroids, vector), count, _MARGIN)
        cosines = np.einsum("ij,j->i", self.centroids[rows].astype(np.float64), vector.astype(np.float64))
        best = np.argsort(-np.round(cosines, SCORE_DECIMALS), kind="stable")[:count]
        return [int(row) for row in rows[best]]

    @classmethod
    def of(cls, members: list[Numbers], vectors: Vectors) -> "Topics":
        """Make the topics of a partition of keywords with embeddings of shape (n, d)."""
        return cls(tuple(members), centroids(members, vectors).astype(np.float32))


async def build_topics(keywords: KeywordLayer, rules: TopicRules, seed: int) -> Topics:
    """Partition the keywords as they are now. A function of them alone, so when it ran before does not matter."""
    vectors = keywords.vectors(range(len(keywords)))
    graph = Graph(len(keywords), *keywords.pairs())
    members = await asyncio.to_thread(bounded_partition, graph, vectors, rules, seed)
    return Topics.of(members, vectors)


def bounded_partition(graph: Graph, vectors: Vectors, rules: TopicRules, seed: int) -> list[Numbers]:
    """Partition nodes into communities within the size bounds.

    None is larger than ``max_keywords``; one may be smaller than ``min_keywords`` only if no other has room for it.

    Args:
        graph: co-occurrence of the keywords.
        vectors: their embeddings, shape (graph.size, d).
        rules: bounds and settings of Leiden.
        seed: of Leiden and k-means.
    """
    whole = leiden(
        graph, resolution=rules.resolution, randomness=rules.randomness, iterations=rules.iterations, seed=seed
    )
    splitter = _Splitter(graph, vectors, rules, seed)
    parts = [part for community in whole for part in splitter.split(community)]
    members = _Joiner(graph, vectors, rules, parts).join()
    return sorted(members, key=lambda numbers: int(numbers[0]))


def centroids(members: list[Numbers], vectors: Vectors) -> NDArray[np.float64]:
    """Return the unit vectors along the means of the members' embeddings, shape (len(members), d)."""
    means = [vectors[numbers].astype(np.float64).mean(axis=0) for numbers in members]
    matrix = np.stack(means) if means else np.zeros((0, vectors.shape[1]))
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    return unit


@dataclass(frozen=True, slots=True)
class _Splitter:
    """Splits communities that are too large: by Leiden at doubled resolutions, in the end by k-means."""

    graph: Graph
    vectors: Vectors
    rules: TopicRules
    seed: int

    def split(self, community: Numbers, depth: int = 1) -> list[Numbers]:
        if len(community) <= self.rules.max_keywords:
            return [community]
        parts: list[Numbers] = []
        if depth <= self.rules.refinements:
            inner = self.graph.induced(community)
            found = leiden(
                inner,
                resolution=self.rules.resolution * 2**depth,
                randomness=self.rules.randomness,
                iterations=self.rules.iterations,
                seed=self.seed,
            )
            # Without edges Leiden leaves single nodes, which is not a division by meaning.
            parts = [community[rows] for rows in found] if len(inner.pairs) else []
        if not parts:
            return self._by_kmeans(community)
        return [piece for part in parts for piece in self.split(part, depth + 1)]

    def _by_kmeans(self, community: Numbers) -> list[Numbers]:
        limit = self.rules.max_keywords
        if len(community) <= limit:
            return [community]
        labels = _kmeans(self.vectors[community], -(-len(community) // limit), self.seed)
        parts = [community[rows] for rows in grouped(labels)]
        if len(parts) < 2:  # all look the same
            return [community[start : start + limit] for start in range(0, len(community), limit)]
        return [piece for part in parts for piece in self._by_kmeans(part)]


def _kmeans(vectors: Vectors, clusters: int, seed: int) -> Numbers:
    """Label rows (n, d) by k-means; fewer clusters where fewer rows are distinct."""
    distinct = len(np.unique(vectors, axis=0))
    if min(clusters, distinct) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    model = KMeans(n_clusters=min(clusters, distinct), random_state=seed, n_init=1)
    with threadpool_limits(1, user_api="openmp"):  # the order of partial sums must not depend on the machine
        return np.asarray(model.fit_predict(vectors.astype(np.float64)), dtype=np.int64)


class _Joiner:
    """Moves communities that are too small into others with room: smallest first, ties by number.

    A community's number is its place in ``parts``; one that moved has size 0.
    """

    def __init__(self, graph: Graph, vectors: Vectors, rules: TopicRules, parts: list[Numbers]) -> None:
        self._rules, self._vectors = rules, vectors
        self._parts = list(parts)
        self._sizes = np.array([len(part) for part in parts], dtype=np.int64)
        self._home = np.zeros(graph.size, dtype=np.int64)
        for number, part in enumerate(parts):
            self._home[part] = number
        self._adjacency = graph.adjacency()

    def join(self) -> list[Numbers]:
        """Join by edges first, then by nearest centroid; what fits nowhere stays small."""
        self._join_all(self._edge_weights)
        if self._small():
            self._join_all(self._centroid_cosines().__getitem__)
        return [np.sort(part) for part, size in zip(self._parts, self._sizes, strict=True) if size]

    def _small(self) -> list[int]:
        small = np.flatnonzero((self._sizes > 0) & (self._sizes < self._rules.min_keywords))
        return [int(number) for number in small[np.argsort(self._sizes[small], kind="stable")]]

    def _join_all(self, affinity: Callable[[int], NDArray[np.float64]]) -> None:
        """Join until every small community has been tried in vain; ``-inf`` stands for no affinity at all."""
        stuck: set[int] = set()
        while waiting := [number for number in self._small() if number not in stuck]:
            for number in waiting:
                size = self._sizes[number]
                if not 0 < size < self._rules.min_keywords:
                    continue  # it moved, or took another in and grew
                room = (self._sizes > 0) & (self._sizes + size <= self._rules.max_keywords)
                room[number] = False
                likings = np.where(room, affinity(number), -np.inf)
                target = int(np.argmax(likings))
                if likings[target] == -np.inf:
                    stuck.add(number)
                else:
                    self._move(number, target)

    def _move(self, number: int, target: int) -> None:
        self._home[self._parts[number]] = target
        self._parts[target] = np.concatenate([self._parts[target], self._parts[number]])
        self._sizes[target] += self._sizes[number]
        self._parts[number], self._sizes[number] = self._parts[number][:0], 0

    def _edge_weights(self, number: int) -> NDArray[np.float64]:
        totals = np.zeros(len(self._parts))
        for node in self._parts[number].tolist():
            tails, weights = self._adjacency.of(node)
            np.add.at(totals, self._home[tails], weights)
        return np.where(totals > 0, totals, -np.inf)

    def _centroid_cosines(self) -> dict[int, NDArray[np.float64]]:
        """Return the cosines of the small communities' centroids with all others, as they are before this step."""
        small = self._small()
        alive = np.flatnonzero(self._sizes > 0)
        rows = centroids([self._parts[number] for number in alive], self._vectors)
        cosines = np.full((len(small), len(self._parts)), -np.inf)
        cosines[:, alive] = np.round(rows[np.searchsorted(alive, small)] @ rows.T, SCORE_DECIMALS)
        return dict(zip(small, cosines, strict=True))
