"""Stage that each question's gold evidence reached, and the scores of the answers by stage.

Evidence is matched by lineage: a memory names the turns it came from. A share is taken over the gold turns of a
question and averaged over the questions with gold evidence; it is ``None`` where one of them does not have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, get_args

from eval.metrics.evidence import SHOWN_RECALL, STORED_RECALL
from eval.metrics.registry import scale_of
from eval.results.compare.rows import f1_metric
from eval.results.stored_run import StoredRun, category_names
from eval.runs.records import ScoreRow
from eval.scoring.estimates import mean_value
from eval.scoring.protocols import Protocol, recorded_protocol

#: Where a question's evidence stopped: all of it in the context, some of it, none of it though some was stored, none
#: stored; ``not in context`` where it is not known what was stored.
Reach = Literal["whole", "part", "stored", "not stored", "not in context"]
REACHES: tuple[Reach, ...] = get_args(Reach)
#: What evidence passes on its way into the context.
Stage = Literal["stored", "at_5", "at_10"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True, slots=True)
class MeanScore:
    """Some questions: how many, and their mean score in percent; ``None`` where none was scored."""

    questions: int
    score: float | None


@dataclass(frozen=True, slots=True)
class EvidenceFunnel:
    """The evidence of some questions of one run.

    Attributes:
        label: which questions.
        questions: how many with gold evidence.
        stored: share that some entry of the memory came from, percent.
        at_5: share that the first five memories hold.
        at_10: share that the first ten hold.
        shown: share that the memories in the context hold; see :func:`eval.scoring.shown.shown_hits`.
        score: mean score, percent.
        reached: scores by how far the evidence came; none where it is not known.
        complete: scores of the questions of which all gold turns came that far; a stage of which the shares of some
            questions are not known is not in it. That of the context is ``reached["whole"]``.
    """

    label: str
    questions: int
    stored: float | None
    at_5: float | None
    at_10: float | None
    shown: float | None
    score: float | None
    reached: Mapping[Reach, MeanScore]
    complete: Mapping[Stage, MeanScore]


def stored_share_of(row: ScoreRow) -> float | None:
    """Return the share of a question's gold turns that its memory stores; ``None`` where that is not known."""
    return row.metrics.get(STORED_RECALL)


def shown_share_of(row: ScoreRow) -> float | None:
    """Return the share of a question's gold turns in the context; ``None`` where that is not known.

    Returns:
        0 for an empty context, which holds no turn.
    """
    found = row.metrics.get(SHOWN_RECALL)
    empty = row.metrics.get("context_chars") == 0 and stored_share_of(row) is not None
    return 0.0 if found is None and empty else found


def has_gold(row: ScoreRow) -> bool:
    """Return whether a question has gold evidence, as far as its scores say."""
    return any(row.metrics.get(name) is not None for name in (STORED_RECALL, "pool_recall", "recall@10"))


def reach_of(row: ScoreRow) -> Reach | None:
    """Return the stage that evidence reached; ``None`` where the context is unknown."""
    shown, stored = shown_share_of(row), stored_share_of(row)
    if shown is None:
        return None
    if shown > 0:
        return "whole" if shown == 1 else "part"
    return "not in context" if stored is None else "stored" if stored > 0 else "not stored"


def names_turns(run: StoredRun) -> bool:
    """Return whether some retrieved memory names its turns; assumed for runs that did not count it."""
    found = run.summary.get("storage") or {}
    return not found.get("hits") or bool(found.get("hits_naming_turns"))


def evidence_funnels(run: StoredRun) -> list[EvidenceFunnel]:
    """Return the funnel over all questions that the protocol counts, then by category; empty without gold."""
    protocol = run_protocol(run)
    gold = [row for row in run.rows if has_gold(row)] if names_turns(run) else []
    counted = [row for row in gold if protocol.counts(row.kind)]
    if not counted:
        return []
    found = [_funnel("all", counted, protocol)]
    for category, name in category_names(run).items():
        if own := [row for row in gold if row.category == category]:
            found.append(_funnel(name, own, protocol))
    return found


def weighted_protocol(run: StoredRun) -> Protocol:
    """Return the protocol that a run was asked for."""
    return recorded_protocol(run.record["config"].get("protocol") or {"name": "clag"})


def run_protocol(run: StoredRun) -> Protocol:
    """Return the protocol that a run was asked for, with plain means over questions."""
    return replace(weighted_protocol(run), weighting="question_mean")


def _funnel(label: str, rows: Sequence[ScoreRow], protocol: Protocol) -> EvidenceFunnel:
    reached: dict[Reach, list[ScoreRow]] = {reach: [] for reach in REACHES}
    for row in rows:
        if (reach := reach_of(row)) is not None:
            reached[reach].append(row)
    known = sum(map(len, reached.values())) == len(rows)
    metric = f1_metric(protocol)
    shares: dict[Stage, list[float | None]] = {
        "stored": [stored_share_of(row) for row in rows],
        "at_5": [row.metrics.get("recall@5") for row in rows],
        "at_10": [row.metrics.get("recall@10") for row in rows],
    }
    return EvidenceFunnel(
        label,
        len(rows),
        _percent(shares["stored"]),
        _percent(shares["at_5"]),
        _percent(shares["at_10"]),
        _percent([shown_share_of(row) for row in rows]),
        mean_score(rows, metric, protocol).score,
        {reach: mean_score(own, metric, protocol) for reach, own in reached.items() if own} if known else {},
        {
            stage: mean_score([row for row, share in zip(rows, of_each, strict=True) if share == 1], metric, protocol)
            for stage, of_each in shares.items()
            if None not in of_each
        },
    )


def _percent(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return 100 * fsum(known) / len(known) if known and len(known) == len(shares) else None


def mean_score(rows: Sequence[ScoreRow], metric: str, protocol: Protocol) -> MeanScore:
    """Return the mean of some questions of a run, which may be none, by a metric of its protocol."""
    value = mean_value(rows, metric, None, protocol) if rows else None
    return MeanScore(len(rows), None if value is None else scale_of(metric) * value)
