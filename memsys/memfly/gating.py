"""From a judged pair of notes to an operation (paper, equation 6; appendix A.1.2 for the reading of the scores)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memsys.index.vector import SCORE_DECIMALS
from memsys.memfly.roles import Relation
from memsys.memfly.rules import Ablation, UpdateRules

Action = Literal["merge", "link", "conflict", "none"]

#: Name that the prompt gives to what an action does.
OPERATION_OF: Mapping[Action, str] = {"merge": "MERGE", "link": "LINK", "conflict": "LINK", "none": "APPEND"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The model's judgement of the new note and one candidate.

    Attributes:
        candidate: position of the candidate among all notes.
        relation: kind of the relation.
        strength: in [0, 1].
        operation: what the model itself would do; compared with the decision, never carried out.
        updated_context: the model's text of both notes together; empty where it gave none.
    """

    candidate: int
    relation: Relation
    strength: float
    operation: str = ""
    updated_context: str = ""


@dataclass(frozen=True, slots=True)
class PairScores:
    """Redundancy and complementarity of a pair, both in [0, 1]."""

    redundancy: float
    complementarity: float


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """Operation on a new note: merged into a note or appended, and linked to others.

    Attributes:
        merge: the pair that merges; ``None`` appends the note.
        links: pairs that are linked, in candidate order, with their kind.
        actions: the gate's verdict of every pair, in the order judged.
    """

    merge: Judgement | None
    links: tuple[tuple[Judgement, Literal["link", "conflict"]], ...]
    actions: tuple[Action, ...]


def scores(relation: Relation, strength: float, rules: UpdateRules) -> PairScores:
    """Read one printed strength as the two scores of the method; a conflict has neither.

    A redundant pair counts as complementary only up to ``tau_merge``, so that it merges or links, never both.
    """
    if relation == "CONFLICTS":
        return PairScores(0.0, 0.0)
    if relation == "SUPPORTS" or rules.related_can_merge:
        return PairScores(strength, strength if strength <= rules.tau_merge else 0.0)
    return PairScores(0.0, strength)


def gate(judgement: Judgement, rules: UpdateRules, ablate: Ablation) -> Action:
    """Decide on one pair. Thresholds are strict: a strength equal to one does not reach it."""
    if judgement.relation == "CONFLICTS":
        return "none" if ablate.link else "conflict"
    pair = scores(judgement.relation, judgement.strength, rules)
    merges = pair.redundancy > rules.tau_merge
    if merges and not ablate.merge:
        return "merge"
    links = pair.complementarity > rules.tau_link
    if merges:
        links = rules.without_merge == "link" and judgement.strength > rules.tau_link
    return "link" if links and not ablate.link else "none"


def decide(
    judgements: Sequence[Judgement], cosines: Mapping[int, float], rules: UpdateRules, ablate: Ablation
) -> MergeDecision:
    """Decide on a new note: it merges into one note at most, and is linked to all others that merging or linking fits.

    Args:
        judgements: at most one per candidate.
        cosines: of the candidates with the new note, by position.
        rules: thresholds.
        ablate: what is left out.
    """
    actions = tuple(gate(judgement, rules, ablate) for judgement in judgements)
    merging = [judgement for judgement, action in zip(judgements, actions, strict=True) if action == "merge"]
    best = min(merging, key=lambda pair: _merge_rank(pair, cosines), default=None)
    links: list[tuple[Judgement, Literal["link", "conflict"]]] = []
    for judgement, action in zip(judgements, actions, strict=True):
        if action == "conflict":
            links.append((judgement, "conflict"))
        elif action == "link" or (action == "merge" and judgement is not best and not ablate.link):
            links.append((judgement, "link"))
    return MergeDecision(best, tuple(links), actions)


def _merge_rank(pair: Judgement, cosines: Mapping[int, float]) -> tuple[float, float, int]:
    """Sort key: the most redundant first, then the nearest, then the oldest."""
    return -pair.strength, -round(cosines[pair.candidate], SCORE_DECIMALS), pair.candidate


def merged_context(old: str, new: str, proposed: str, rules: UpdateRules) -> tuple[str, bool]:
    """Return the context of a merged note, and whether it is the model's.

    A proposal shorter than ``min_merged_share`` of the old context has lost something: the new context is then
    appended, unless the old one holds it word for word.
    """
    proposed = " ".join(proposed.split())
    if proposed and len(proposed) >= rules.min_merged_share * len(old):
        return proposed, True
    if new.casefold() in old.casefold():
        return old, False
    return rules.merged.format(old=old, new=new), False
