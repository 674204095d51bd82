"""Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from memsys.index.vector import SCORE_DECIMALS

#: The constant of the paper; it damps the difference between the first ranks.
RRF_K = 60

Item = TypeVar("Item", bound=Hashable)


def reciprocal_rank_scores(
    rankings: Sequence[Sequence[Item]],
    weights: Sequence[float] | None = None,
    *,
    k: int = RRF_K,
    depth: int | None = None,
) -> dict[Item, float]:
    """Sum ``weight / (k + rank)`` over the rankings; an item that a ranking lacks gets no term from it.

    Args:
        rankings: lists of ids, best first.
        weights: one per ranking; all 1 by default.
        k: damping constant.
        depth: how many of each list count; ``None`` for all.

    Returns:
        Score per id, in order of first appearance.
    """
    scores: dict[Item, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(ranking[:depth], start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return scores


def fuse(
    rankings: Sequence[Sequence[str]],
    tie_scores: Mapping[str, float],
    weights: Sequence[float] | None = None,
    *,
    k: int = RRF_K,
    depth: int | None = None,
) -> list[tuple[str, float]]:
    """Fuse rankings; ties go to the higher ``tie_scores`` (dense similarity), then to the order of that mapping.

    Args:
        rankings: lists of ids, best first; every id is a key of ``tie_scores``.
        tie_scores: score per id, in insertion order of the ids.
        weights: one per ranking.
        k: damping constant.
        depth: how many of each list count; ``None`` for all.

    Returns:
        Pairs of id and fused score, best first. Scores are compared after rounding to twelve decimals: neighbouring
        ranks differ by more than 1e-5.
    """
    scores = reciprocal_rank_scores(rankings, weights, k=k, depth=depth)
    place = {item: position for position, item in enumerate(tie_scores)}
    return sorted(
        scores.items(),
        key=lambda pair: (-round(pair[1], 12), -round(tie_scores[pair[0]], SCORE_DECIMALS), place[pair[0]]),
    )
