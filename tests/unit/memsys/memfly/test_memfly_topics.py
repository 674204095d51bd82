"""Topics: Leiden against known graphs, size bounds by hand and as properties."""

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.memfly.communities import Graph, Numbers, grouped, leiden
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.note import MemFlyNote
from memsys.memfly.topics import Topics, bounded_partition, build_topics, centroids
from tests.support.memfly import preset

RULES = preset().rules().topics


def graph(size: int, edges: dict[tuple[int, int], float]) -> Graph:
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(len(edges), 2)
    return Graph(size, pairs, np.array([edges[pair] for pair in sorted(edges)], dtype=np.float64))


def cliques(*groups: range, bridges: dict[tuple[int, int], float] | None = None) -> dict[tuple[int, int], float]:
    inner = {pair: 1.0 for group in groups for pair in itertools.combinations(group, 2)}
    return inner | (bridges or {})


def vectors(size: int, dimension: int = 8, seed: int = 0) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(seed).standard_normal((size, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def partition(made: Graph, rows: np.ndarray[Any, Any] | None = None, **bounds: Any) -> list[list[int]]:
    found = bounded_partition(made, vectors(made.size) if rows is None else rows, replace(RULES, **bounds), seed=3)
    return [members.tolist() for members in found]


def communities(made: Graph, resolution: float = 1.0) -> list[list[int]]:
    return [part.tolist() for part in leiden(made, resolution=resolution, randomness=0.001, iterations=10, seed=3)]


def modularity(graph: Graph, communities: list[Numbers], resolution: float = 1.0) -> float:
    """Return Newman's modularity of a partition: sum over communities of w_in / W - gamma (d / 2W)^2."""
    total = float(graph.weights.sum())
    if total == 0.0:
        return 0.0
    label = np.full(graph.size, -1, dtype=np.int64)
    for number, members in enumerate(communities):
        label[members] = number
    ends = label[graph.pairs]
    inside = np.bincount(ends[:, 0], weights=graph.weights * (ends[:, 0] == ends[:, 1]), minlength=len(communities))
    degrees = np.bincount(ends.ravel(), weights=np.repeat(graph.weights, 2), minlength=len(communities))
    return float((inside / total - resolution * (degrees / (2 * total)) ** 2).sum())


def test_two_triangles_are_two_communities() -> None:
    made = graph(7, cliques(range(3), range(3, 6), bridges={(2, 3): 1.0}))
    assert communities(made) == [[0, 1, 2], [3, 4, 5], [6]]
    # 7 edges, 3 inside each triangle, degrees 7 and 7: 2 (3/7 - (7/14)^2) = 5/14
    assert modularity(made, leiden(made, resolution=1.0, randomness=0.001, iterations=10, seed=3)) == pytest.approx(
        5 / 14
    )


def test_weights_decide() -> None:
    square = {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 5.0, (0, 3): 1.0}
    assert communities(graph(4, square)) == [[0, 1], [2, 3]]
    assert communities(graph(4, {pair: 6.0 - weight for pair, weight in square.items()})) == [[0, 3], [1, 2]]


def test_no_edges_leave_single_nodes() -> None:
    assert communities(graph(3, {})) == [[0], [1], [2]]
    assert communities(graph(0, {})) == []
    assert modularity(graph(3, {}), [np.array([0, 1, 2])]) == 0.0


def test_the_induced_graph_is_numbered_anew() -> None:
    inner = graph(5, {(0, 1): 1.0, (1, 3): 2.0, (3, 4): 3.0}).induced(np.array([1, 3, 4]))
    assert (inner.size, inner.pairs.tolist(), inner.weights.tolist()) == (3, [[0, 1], [1, 2]], [2.0, 3.0])
    tails, weights = inner.adjacency().of(1)
    assert (tails.tolist(), weights.tolist()) == ([0, 2], [2.0, 3.0])


def test_a_small_community_joins_where_most_of_its_edges_lead() -> None:
    bridges = {(0, 8): 0.5, (4, 8): 1.0, (8, 9): 9.0}
    made = graph(10, cliques(range(4), range(4, 8), bridges=bridges))
    assert communities(made) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert partition(made) == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    assert partition(made, max_keywords=5) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], "no room: it stays small"


def test_an_isolated_keyword_joins_the_nearest_centroid_with_room() -> None:
    made = graph(9, cliques(range(4), range(4, 7)))
    rows = np.zeros((9, 3), dtype=np.float32)
    rows[:4, 0], rows[4:7, 1], rows[7, 0], rows[8, 0] = 1, 1, 1, 1
    assert partition(made, rows) == [[0, 1, 2, 3, 7, 8], [4, 5, 6]]
    assert partition(made, rows, max_keywords=5, min_keywords=2) == [[0, 1, 2, 3, 7], [4, 5, 6, 8]]


def test_a_large_clique_is_split_in_the_end_by_kmeans() -> None:
    made = graph(12, cliques(range(12)))
    rows = np.zeros((12, 2), dtype=np.float32)
    rows[:6, 0], rows[6:, 1] = 1, 1
    assert partition(made, rows, max_keywords=6, refinements=0) == [list(range(6)), list(range(6, 12))]
    same = np.ones((12, 2), dtype=np.float32)
    assert partition(made, same, max_keywords=5, refinements=0) == [
        [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11],
    ]  # fmt: skip


graphs = st.integers(1, 40).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.dictionaries(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] < pair[1]),
            st.integers(1, 5).map(float),
            max_size=80,
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(graphs, st.integers(1, 4), st.integers(4, 12), st.integers(0, 5))
def test_topics_are_a_partition_within_the_bounds(
    drawn: tuple[int, dict[tuple[int, int], float]], least: int, most: int, seed: int
) -> None:
    size, edges = drawn
    made, rows = graph(size, edges), vectors(size, seed=seed)
    rules = replace(RULES, min_keywords=least, max_keywords=most)
    found = bounded_partition(made, rows, rules, seed)
    assert sorted(itertools.chain.from_iterable(part.tolist() for part in found)) == list(range(size))
    sizes = [len(part) for part in found]
    assert max(sizes) <= most
    for place, small in enumerate(sizes):
        if small < least:
            assert all(small + other > most for at, other in enumerate(sizes) if at != place), "no other had room"
    again = bounded_partition(made, rows, rules, seed)
    assert [part.tolist() for part in again] == [part.tolist() for part in found]


def test_topics_of_a_random_graph_are_within_the_papers_bounds() -> None:
    rng = np.random.default_rng(5)
    edges = {(int(a), int(b)): 1.0 for a, b in np.sort(rng.integers(0, 400, (900, 2)), axis=1) if a != b}
    sizes = [len(part) for part in partition(graph(400, edges), vectors(400))]
    assert sum(sizes) == 400
    assert min(sizes) >= RULES.min_keywords and max(sizes) <= RULES.max_keywords


def test_centroids_are_unit_means() -> None:
    rows = np.array([[1, 0], [0, 1], [0, 1], [0, -1]], dtype=np.float32)
    found = centroids([np.array([0, 1]), np.array([2, 3])], rows)
    assert found.tolist() == [pytest.approx([0.5**0.5, 0.5**0.5]), [0.0, 0.0]]
    assert centroids([], rows).shape == (0, 2)


def test_nearest_topics_break_ties_by_number() -> None:
    rows = np.eye(3, dtype=np.float32)
    topics = Topics.of([np.array([2]), np.array([0]), np.array([1])], rows)
    assert topics.nearest(rows[1], 3) == [2, 0, 1]
    assert Topics.of([], rows).nearest(rows[1], 3) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.sampled_from([2, 8, 384]), st.integers(0, 10**6))
def test_nearest_topics_are_those_of_all_cosines_in_double_precision(
    size: int, count: int, dimension: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = vectors(9, dimension, seed)[rng.integers(9, size=size)]  # many ties
    rows[::3] += rng.choice([0.0, 1e-7, 1e-3], size=(len(rows[::3]), 1)) * vectors(len(rows[::3]), dimension, seed + 1)
    topics = Topics.of([np.array([row]) for row in range(size)], rows.astype(np.float32))
    cosines = np.einsum("ij,j->i", topics.centroids.astype(np.float64), rows[0].astype(np.float64))
    order = np.argsort(-np.round(cosines, 6), kind="stable")
    assert topics.nearest(rows[0], count) == order[:count].tolist()


def test_topics_follow_the_keywords_of_the_notes() -> None:
    keywords = KeywordLayer(8, 0.99, 5)
    keywords.link([f"k{n}" for n in range(8)], np.eye(8, dtype=np.float32))
    for position, held in enumerate([[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5], [2, 3]]):
        keywords.attach(MemFlyNote(f"n{position}", [], "", []), position, held)
    topics = asyncio.run(build_topics(keywords, replace(RULES, min_keywords=1), seed=1))
    assert [members.tolist() for members in topics.members] == [[0, 1, 2], [3, 4, 5], [6], [7]]
    assert np.allclose(np.linalg.norm(topics.centroids, axis=1), 1)


def test_groups_are_ordered_by_their_lowest_node() -> None:
    assert [part.tolist() for part in grouped(np.array([4, 2, 4, 0]))] == [[0, 2], [1], [3]]
