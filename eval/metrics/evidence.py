"""Evidence metrics of one question: did the retrieved memories hold the gold turns (CLAG, equations 14-18).

Two matchings give the same figures: by *lineage* (a memory names the turns it came from, through every rewriting) and
by *substring* (the papers' way: normalised gold text within normalised memory text, which only systems that keep raw
text can pass).
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from eval.metrics.overlap import harmonic
from memsys.scripts import without_punctuation

#: Retrieved memories beyond this rank do not count.
DEPTH = 10
#: Ends the names of metrics that look for the gold turns' text in what was retrieved.
SUBSTRING = "_substring"
#: Share of the gold turns that some entry of the memory came from, whether it was retrieved or not; from snapshots.
STORED_RECALL = "stored_recall"
#: Share of the gold turns that a memory in the context came from: of all that was retrieved, what the reader saw.
SHOWN_RECALL = "shown_recall"
#: Share of the gold turns among the first ten *turns* that the retrieved memories came from, however many each has.
TURN_RECALL = "recall_turns@10"


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranked list against gold.

    Attributes:
        relevant: per retrieved memory, whether it holds any gold.
        gold_ranks: per gold, the rank (from 1) of the first memory that holds it, or ``None``.
    """

    relevant: tuple[bool, ...]
    gold_ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class SubstringMatching:
    """Options of the substring matching.

    Attributes:
        nfkc: apply Unicode normalisation form KC (ours; the paper names lower-casing, punctuation and blanks).
        deduplicate: count gold texts that are equal after normalisation once.
    """

    nfkc: bool = True
    deduplicate: bool = True


@lru_cache(maxsize=1 << 15)
def normalise(text: str, nfkc: bool = True) -> str:
    """Return the text in lower case with punctuation replaced by spaces and spaces collapsed."""
    text = unicodedata.normalize("NFKC", text) if nfkc else text
    return " ".join(without_punctuation(text.lower()).split())


def rank_holding(holds: Sequence[Sequence[bool]], gold: int) -> Ranking:
    """Build a ranking from ``holds[memory][gold]``."""
    ranks = tuple(next((rank for rank, row in enumerate(holds, start=1) if row[g]), None) for g in range(gold))
    return Ranking(tuple(any(row) for row in holds), ranks)


def rank_by_lineage(retrieved: Sequence[Sequence[str]], evidence: Sequence[str], depth: int = DEPTH) -> Ranking | None:
    """Rank memories by the gold turns that their lineage names.

    Args:
        retrieved: per memory, best first, the ids of the turns it came from.
        evidence: gold turn ids; repetitions count once.
        depth: cut of the list.

    Returns:
        The ranking, or ``None`` where there is no gold.
    """
    gold = tuple(dict.fromkeys(evidence))
    if not gold:
        return None
    origins = [set(turn_ids) for turn_ids in retrieved[:depth]]
    return rank_holding([[turn_id in origin for turn_id in gold] for origin in origins], len(gold))


def rank_by_substring(
    retrieved: Sequence[str],
    evidence_texts: Sequence[str],
    matching: SubstringMatching = SubstringMatching(),
    depth: int = DEPTH,
) -> Ranking | None:
    """Rank memories by the gold texts they contain; see :func:`rank_by_lineage`. Empty normalised gold is ignored."""
    texts = [text for text in (normalise(gold, matching.nfkc) for gold in evidence_texts) if text]
    gold = tuple(dict.fromkeys(texts)) if matching.deduplicate else tuple(texts)
    if not gold:
        return None
    memories = [normalise(text, matching.nfkc) for text in retrieved[:depth]]
    return rank_holding([[text in memory for text in gold] for memory in memories], len(gold))


def ranked_turns(origins: Sequence[Sequence[str]]) -> list[str]:
    """Return turns in the order of the memories made from them, each at its first occurrence."""
    return list(dict.fromkeys(turn for origin in origins for turn in origin))


def turn_scores(retrieved: Sequence[Sequence[str]] | None, evidence: Sequence[str]) -> dict[str, float | None]:
    """Return recall over the first :data:`DEPTH` turns, which does not grow with the size of memories.

    Args:
        retrieved: per memory, best first, the ids of the turns it came from; ``None`` where they are not ranked.
        evidence: gold turn ids; repetitions count once.
    """
    gold = set(evidence)
    known = retrieved is not None and bool(gold)
    return {TURN_RECALL: len(gold & set(ranked_turns(retrieved or ())[:DEPTH])) / len(gold) if known else None}


def discounted_gain(ranks: Sequence[int]) -> float:
    """Return DCG of binary gains at the given ranks (from 1)."""
    return sum(1 / log2(rank + 1) for rank in ranks)


def precision(ranking: Ranking) -> float:
    """Return the share of the retrieved memories that hold gold; 0 when nothing was retrieved (CLAG, equation 14)."""
    return sum(ranking.relevant) / len(ranking.relevant) if ranking.relevant else 0.0


def recall(ranking: Ranking, k: int = DEPTH) -> float:
    """Return the share of the gold that the first ``k`` memories hold (CLAG, equation 16)."""
    return sum(rank is not None and rank <= k for rank in ranking.gold_ranks) / len(ranking.gold_ranks)


def ndcg_retrieved(ranking: Ranking) -> float:
    """Return DCG over the DCG of the same flags sorted, 0 without a hit: the definition that fits CLAG's nDCG@10."""
    ranks = [rank for rank, relevant in enumerate(ranking.relevant, start=1) if relevant]
    return discounted_gain(ranks) / discounted_gain(range(1, len(ranks) + 1)) if ranks else 0.0


def ndcg(ranking: Ranking, k: int = DEPTH) -> float:
    """Return nDCG@k: gain 1 for a memory that is the first with some gold; the ideal has ``min(gold, k)`` ones."""
    first = {rank for rank in ranking.gold_ranks if rank is not None and rank <= k}
    return discounted_gain(sorted(first)) / discounted_gain(range(1, min(len(ranking.gold_ranks), k) + 1))


def ndcg_clipped(ranking: Ranking) -> float:
    """Return nDCG@10 with gain 1 for every memory with gold, clipped at 1 (repeated gold would exceed it)."""
    ranks = [rank for rank, relevant in enumerate(ranking.relevant[:DEPTH], start=1) if relevant]
    return min(1.0, discounted_gain(ranks) / discounted_gain(range(1, min(len(ranking.gold_ranks), DEPTH) + 1)))


def reciprocal_rank(ranking: Ranking) -> float:
    """Return one over the rank of the first memory with gold, else 0."""
    return next((1 / rank for rank, relevant in enumerate(ranking.relevant, start=1) if relevant), 0.0)


#: Figures of one ranking, in table order.
EVIDENCE_METRICS = {
    "e_precision": precision,
    "e_recall": recall,
    "e_f1": lambda ranking: harmonic(precision(ranking), recall(ranking)),
    "recall@5": lambda ranking: recall(ranking, 5),
    "recall@10": recall,
    "ndcg@10": ndcg,
    "ndcg@10_clipped": ndcg_clipped,
    "ndcg@10_retrieved": ndcg_retrieved,
    "hit_rate": lambda ranking: float(any(ranking.relevant)),
    "mrr": reciprocal_rank,
}


def evidence_scores(ranking: Ranking | None, suffix: str = "") -> dict[str, float | None]:
    """Return all scores of a ranking, ``None`` throughout for a question without gold or a memory that ranks nothing.

    Args:
        ranking: from one of the matchings.
        suffix: appended to the names.
    """
    return {name + suffix: None if ranking is None else metric(ranking) for name, metric in EVIDENCE_METRICS.items()}


#: Figures over all that was retrieved, without a cut at rank 10, in table order: the ablations of MemFly (Table 3) say
#: neither how many memories count nor publish code; the pool that reaches the reader is the natural reading.
POOL_METRICS: Mapping[str, Callable[[Ranking], float]] = {
    "pool_recall": lambda ranking: recall(ranking, len(ranking.relevant)),
    "pool_hit_rate": lambda ranking: float(any(ranking.relevant)),
}


def shown_scores(ranking: Ranking | None) -> dict[str, float | None]:
    """Return the share of the gold that the memories in the context hold; see :func:`evidence_scores`.

    Args:
        ranking: of the memories in the context alone, made with a depth that cuts nothing; ``None`` also where it is
            not known which these are.
    """
    return {SHOWN_RECALL: None if ranking is None else recall(ranking, len(ranking.relevant))}


def pool_scores(ranking: Ranking | None, suffix: str = "") -> dict[str, float | None]:
    """Return the scores of the whole pool; see :func:`evidence_scores`.

    Args:
        ranking: from one of the matchings, made with a depth that cuts nothing.
        suffix: appended to the names.
    """
    return {name + suffix: None if ranking is None else metric(ranking) for name, metric in POOL_METRICS.items()}
