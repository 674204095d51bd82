"""Stage that each question's gold evidence reached, and the scores of the answers by stage.

Evidence is matched by lineage: a memory names the turns it came from. A share is taken over the gold turns of a
question and averaged over the questions with gold evidence; it is ``None`` where one of them does not have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, get_args

import numpy as np

from eval.metrics.evidence import SHOWN_RECALL, STORED_RECALL
from eval.metrics.registry import scale_of
from eval.results.compare.rows import f1_metric
from eval.results.stored_run import StoredRun, category_names
from eval.runs.records import ScoreRow
from eval.scoring.columns import Flags, ScoreColumns
from eval.scoring.estimates import mean_value
from eval.scoring.inference import Floats
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


def stored_shares(columns: ScoreColumns) -> Floats:
    """Return the share of each question's gold turns that its memory stores; NaN where that is not known."""
    return columns.column(STORED_RECALL)


def shown_shares(columns: ScoreColumns) -> Floats:
    """Return the share of each question's gold turns in its context, 0 for an empty one; NaN where it is not known."""
    found = columns.column(SHOWN_RECALL)
    empty = (columns.column("context_chars") == 0) & ~np.isnan(stored_shares(columns))
    return np.where(np.isnan(found) & empty, 0.0, found)


def with_gold(columns: ScoreColumns) -> ScoreColumns:
    """Return the questions with gold evidence, as far as their scores say."""
    return columns.with_any((STORED_RECALL, "pool_recall", "recall@10"))


def reaches(columns: ScoreColumns) -> dict[Reach, Flags]:
    """Return the questions whose evidence reached each stage; in none are those whose context is unknown."""
    shown, stored = shown_shares(columns), stored_shares(columns)
    none = shown == 0
    return {
        "whole": shown == 1,
        "part": (shown > 0) & (shown < 1),
        "stored": none & (stored > 0),
        "not stored": none & (stored == 0),
        "not in context": none & np.isnan(stored),
    }


def names_turns(run: StoredRun) -> bool:
    """Return whether some retrieved memory names its turns; assumed for runs that did not count it."""
    found = run.summary.get("storage") or {}
    return not found.get("hits") or bool(found.get("hits_naming_turns"))


def evidence_funnels(run: StoredRun) -> list[EvidenceFunnel]:
    """Return the funnel over all questions that the protocol counts, then by category; empty without gold."""
    protocol = run_protocol(run)
    gold = with_gold(run.columns)
    counted = gold.only(gold.counted(protocol))
    if not counted or not names_turns(run):
        return []
    found = [_funnel("all", counted, protocol)]
    for category, name in category_names(run).items():
        if own := gold.only(gold.categories == category):
            found.append(_funnel(name, own, protocol))
    return found


def weighted_protocol(run: StoredRun) -> Protocol:
    """Return the protocol that a run was asked for."""
    return recorded_protocol(run.record["config"].get("protocol") or {"name": "clag"})


def run_protocol(run: StoredRun) -> Protocol:
    """Return the protocol that a run was asked for, with plain means over questions."""
    return replace(weighted_protocol(run), weighting="question_mean")


def _funnel(label: str, rows: ScoreColumns, protocol: Protocol) -> EvidenceFunnel:
    reached = {reach: rows.only(flags) for reach, flags in reaches(rows).items()}
    known = sum(map(len, reached.values())) == len(rows)
    metric = f1_metric(protocol)
    shares: dict[Stage, Floats] = {
        "stored": stored_shares(rows),
        "at_5": rows.column("recall@5"),
        "at_10": rows.column("recall@10"),
    }
    return EvidenceFunnel(
        label,
        len(rows),
        _percent(shares["stored"]),
        _percent(shares["at_5"]),
        _percent(shares["at_10"]),
        _percent(shown_shares(rows)),
        mean_score(rows, metric, protocol).score,
        {reach: mean_score(own, metric, protocol) for reach, own in reached.items() if own} if known else {},
        {
            stage: mean_score(rows.only(of_each == 1), metric, protocol)
            for stage, of_each in shares.items()
            if not np.isnan(of_each).any()
        },
    )


def _percent(shares: Floats) -> float | None:
    return None if np.isnan(shares).any() else 100 * fsum(shares.tolist()) / len(shares)


def mean_score(rows: Sequence[ScoreRow], metric: str, protocol: Protocol) -> MeanScore:
    """Return the mean of some questions of a run, which may be none, by a metric of its protocol."""
    value = mean_value(rows, metric, None, protocol) if rows else None
    return MeanScore(len(rows), None if value is None else scale_of(metric) * value)
