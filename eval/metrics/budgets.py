"""Evidence under equal conditions: within this many tokens of context, next to what chance finds, and per token.

R@10 counts memories, so that it grows with their size; these count the turns or tokens that a reader has to read. All
are ours and go by lineage. Tokens are estimated by characters and script (:func:`memsys.scripts.estimated_tokens`), so
that they are the same for every system, whatever its backbone.
"""

from collections.abc import Sequence
from math import inf

from eval.metrics.evidence import DEPTH

#: Tokens of context within which recall is taken: the points of a curve.
BUDGETS = (256, 512, 1024, 2048)
#: Share of the gold turns that the memories of the first N tokens came from; a memory counts once it is whole.
BUDGET_RECALL = {budget: f"recall_tokens@{budget}" for budget in BUDGETS}
#: Share of the area below that curve, from 0 to the last budget T: a gold turn read after t tokens counts 1 - t / T.
BUDGET_AREA = "recall_tokens_area"
#: Recall within ten turns of a conversation drawn by chance, and how many times more a memory's first ten turns hold.
CHANCE, LIFT = "chance_turns@10", "lift_turns@10"
#: Share of the context's tokens that gold turns account for.
TOKEN_PRECISION = "token_precision"


def tokens_until(origins: Sequence[Sequence[str]], tokens: Sequence[float], evidence: Sequence[str]) -> list[float]:
    """Return for each gold turn the tokens of all memories up to the first that came from it; infinite if none did.

    Args:
        origins: per memory, best first, the ids of the turns it came from.
        tokens: of each memory, as large as it is in the context.
        evidence: gold turn ids; repetitions count once.
    """
    found: dict[str, float] = {}
    read = 0.0
    for turns, size in zip(origins, tokens, strict=True):
        read += size
        for turn in turns:
            found.setdefault(turn, read)
    return [found.get(turn, inf) for turn in dict.fromkeys(evidence)]


def budget_scores(
    origins: Sequence[Sequence[str]], tokens: Sequence[float] | None, evidence: Sequence[str]
) -> dict[str, float | None]:
    """Return recall at each budget and the area below the curve; see :func:`tokens_until`.

    Args:
        origins: see there.
        tokens: see there; ``None`` where they are not known, or nothing is ranked.
        evidence: see there.
    """
    if tokens is None or not evidence:
        return dict.fromkeys((*BUDGET_RECALL.values(), BUDGET_AREA))
    until = tokens_until(origins, tokens, evidence)
    scores: dict[str, float | None] = {
        name: sum(read <= budget for read in until) / len(until) for budget, name in BUDGET_RECALL.items()
    }
    return scores | {BUDGET_AREA: sum(max(0.0, 1 - read / BUDGETS[-1]) for read in until) / len(until)}


def lift_scores(turn_recall: float | None, turns: int) -> dict[str, float | None]:
    """Return what chance finds within ten turns, and recall as a multiple of it.

    Args:
        turn_recall: share of the gold among the first ten turns; ``None`` where it is not known.
        turns: of the conversation; 0 where they are not known.
    """
    if turn_recall is None or not turns:
        return {CHANCE: None, LIFT: None}
    chance = min(1.0, DEPTH / turns)
    return {CHANCE: chance, LIFT: turn_recall / chance}


def token_precision(
    shown: Sequence[tuple[Sequence[str], float]] | None, gold: dict[str, float], context: float
) -> dict[str, float | None]:
    """Return the share of a context's tokens that gold turns account for.

    A memory counts with the tokens of the gold turns that it is the first to come from, at most with all of its own: of
    eight turns in one memory the one with gold counts, and a gold turn in a few words counts with these.

    Args:
        shown: turns and tokens of each memory in the context; ``None`` where these are not known.
        gold: tokens of each gold turn.
        context: tokens of the context.
    """
    if shown is None or not gold:
        return {TOKEN_PRECISION: None}
    left, useful = dict(gold), 0.0
    for turns, size in shown:
        useful += min(size, sum(left.pop(turn, 0.0) for turn in turns))
    return {TOKEN_PRECISION: min(1.0, useful / context) if context else 0.0}
