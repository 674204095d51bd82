"""Retrieval metrics of LongMemEval: recall (any, all) and nDCG of the first k, of turns and of sessions.

Source: github.com/xiaowu0162/LongMemEval, ``src/retrieval/eval_utils.py``. Their discount gives ranks 1 and 2 the same
weight: DCG = rel_1 + sum over i > 1 of rel_i / log2(i). What was retrieved is mapped to sessions in its order, and the
list continues until k different sessions are found. A turn of a gold session that holds no evidence itself counts for a
session of its own, which is not gold, as ``src/retrieval/run_retrieval.py`` names it, and a gold session without a turn
that holds evidence is not gold. Where gold sessions are named and no gold turn, as own data may do, any turn of a
session finds it. Questions that cannot be answered, or that mark no evidence, have no value.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log2

#: Key of ``Reference.extra``: ids of the sessions that hold the evidence.
EVIDENCE_SESSIONS = "evidence_sessions"
#: Between the id of a session and the place of a turn in it, in the turn's id.
SESSION_SEPARATOR = ":"
#: The depths that the paper prints.
DEPTHS = (5, 10)


def session_of(turn_id: str) -> str:
    """Return the session that a turn's id names."""
    return turn_id.rpartition(SESSION_SEPARATOR)[0]


def first_seen(retrieved: Sequence[Sequence[str]], of: Callable[[str], str] = str) -> list[str]:
    """Flatten memories into ids, each at the place where it first appears.

    Args:
        retrieved: per memory, best first, the ids of the turns it came from.
        of: what a turn's id represents: itself, or its session.
    """
    return list(dict.fromkeys(of(turn_id) for memory in retrieved for turn_id in memory))


def recall_any(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Return 1 where the first ``k`` hold any gold."""
    return float(not set(gold).isdisjoint(found[:k]))


def recall_all(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Return 1 where the first ``k`` hold all gold."""
    return float(set(gold).issubset(found[:k]))


def ndcg_any(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Return DCG of the first ``k`` over that of all gold at the top, with the paper's discount."""
    wanted = set(gold)
    return _dcg([one in wanted for one in found[:k]]) / _dcg([True] * min(len(wanted), k))


def _dcg(relevant: Sequence[bool]) -> float:
    return sum(float(flag) / (log2(rank) if rank > 1 else 1.0) for rank, flag in enumerate(relevant, start=1))


_FUNCTIONS: Mapping[str, Callable[[Sequence[str], Sequence[str], int], float]] = {
    "recall_any": recall_any,
    "recall_all": recall_all,
    "ndcg_any": ndcg_any,
}
#: Names of the metrics, turns first.
SESSION_METRICS: tuple[str, ...] = tuple(
    f"{level}_{name}@{k}" for level in ("turn", "session") for k in DEPTHS for name in _FUNCTIONS
)

_LABELS = {"recall_any": "any", "recall_all": "all", "ndcg_any": "nDCG"}
#: Metrics with a column in comparisons (those of sessions: turns have our own), and its heading.
BY_SESSION: Mapping[str, str] = {
    f"session_{name}@{k}": f"session {label}@{k}" for k in DEPTHS for name, label in _LABELS.items()
}


def _by_session(
    retrieved: Sequence[Sequence[str]], evidence: Sequence[str], sessions: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the sessions in the order found, and those of them that are wanted."""
    if not evidence:
        return first_seen(retrieved, session_of), list(sessions)
    marked, gold = set(evidence), set(sessions)

    def found(turn_id: str) -> str:
        session = session_of(turn_id)
        return f"{session}, without evidence" if session in gold and turn_id not in marked else session

    holding = {session_of(turn_id) for turn_id in evidence}
    return first_seen(retrieved, found), [session for session in sessions if session in holding]


def session_scores(
    retrieved: Sequence[Sequence[str]], evidence: Sequence[str], sessions: Sequence[str], *, ranked: bool = True
) -> dict[str, float | None]:
    """Return all metrics of one question, ``None`` where there is no gold or nothing was ranked.

    Args:
        retrieved: per memory, best first, the ids of the turns it came from.
        evidence: gold turn ids.
        sessions: ids of the gold sessions.
        ranked: see :class:`memsys.vocabulary.Retrieval`.
    """
    found_sessions, gold_sessions = _by_session(retrieved, evidence, sessions)
    levels = {"turn": (first_seen(retrieved), evidence), "session": (found_sessions, gold_sessions)}
    return {
        f"{level}_{name}@{k}": function(found, gold, k) if gold and ranked else None
        for level, (found, gold) in levels.items()
        for k in DEPTHS
        for name, function in _FUNCTIONS.items()
    }
