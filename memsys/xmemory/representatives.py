"""Stage I: a small, diverse and relevant set of nodes on the neighbour graph (paper, equation 4)."""

from collections.abc import Mapping, Sequence

import numpy as np

from memsys.index.vector import SCORE_DECIMALS
from memsys.xmemory.objective import Floats
from memsys.xmemory.rules import Normaliser


def scaled(values: Floats) -> Floats:
    """Map values ``(n,)`` to [0, 1] by their range; 0.5 for all where they are equal."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    if round(high - low, SCORE_DECIMALS) <= 0:
        return np.full(len(values), 0.5)
    return (values - low) / (high - low)


def edge_weights(nodes: Sequence[str], graph: Mapping[str, Sequence[tuple[str, float]]]) -> Floats:
    """Return the weights among candidates ``(n, n)``: 1 with itself, the cosine along an edge, else 0."""
    place = {node: row for row, node in enumerate(nodes)}
    weights = np.eye(len(nodes))
    for row, node in enumerate(nodes):
        for other, cosine in graph.get(node, ()):
            if other in place and cosine > 0:
                weights[row, place[other]] = cosine
    return weights


def select_representatives(
    relevance: Floats, weights: Floats, *, budget: int, alpha: float, coverage: float, normaliser: Normaliser
) -> list[int]:
    """Choose nodes greedily by ``alpha * coverage gain / Z + (1 - alpha) * relevance``.

    Args:
        relevance: similarity of each candidate to the query, ``(n,)``, best first.
        weights: see :func:`edge_weights`, ``(n, n)``; a node covers itself and its neighbours.
        budget: nodes at most.
        alpha: weight of coverage, in [0, 1].
        coverage: stop once this share of the candidates is covered; 1 stops only when all are.
        normaliser: what Z is; see :class:`memsys.xmemory.rules.XMemoryRetrievalRules`.

    Returns:
        Rows in the order they were chosen; the first row alone where nothing has a positive value. Ties: the first.
    """
    count = len(relevance)
    if not count:
        return []
    wanted = scaled(relevance)
    scale = float(weights.sum() if normaliser == "total" else weights.sum(axis=1).max()) or 1.0
    chosen: list[int] = []
    covered = np.zeros(count, dtype=np.bool_)
    while len(chosen) < min(budget, count) and not covered.all():
        gains = weights[:, ~covered].sum(axis=1) / scale
        values = np.round(alpha * gains + (1 - alpha) * wanted, SCORE_DECIMALS)
        values[chosen] = -np.inf
        best = int(values.argmax())
        if values[best] <= 0:
            break
        chosen.append(best)
        covered |= weights[best] > 0
        if coverage < 1 and covered.sum() / count >= coverage:
            break
    return chosen or [0]
