"""The questions that cost a cell most, with what the run retrieved and answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import METRICS, higher_is_better
from eval.results.tables.candidates import LATENCY_METRICS
from eval.runs.load import load_answers, load_references, load_retrievals
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.scoring.answers import gold_answers
from eval.scoring.config import is_verdict
from eval.scoring.estimates import scored_rows
from eval.scoring.protocols import Protocol


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """One question of a run.

    Attributes:
        question_id: its id.
        category: its category.
        kind: what is asked, see :mod:`eval.loaders.question_types`.
        score: of the cell's metric, as stored.
        evidence: gold turn id -> rank of the first memory that comes from it, ``None`` when no memory does.
        question: its text; empty where only scores are at hand.
        gold: reference answers; of category 5 the data set's false answer.
        answer: what was scored; ``None`` in a run without a reader.
        retrieved: whether it is known which memories were retrieved.
        has_texts: whether the run directory was there to read texts and evidence from.
    """

    question_id: str
    category: int
    kind: str
    score: float
    evidence: Mapping[str, int | None]
    question: str = ""
    gold: tuple[str, ...] = ()
    answer: str | None = None
    has_texts: bool = True
    retrieved: bool = True


def worst(
    rows: Sequence[ScoreRow], metric: str, category: int | None, protocol: Protocol, count: int
) -> list[tuple[ScoreRow, float]]:
    """Return the questions of a cell with the worst scores, in the run's order among equals.

    A size, which is neither good nor bad, has none.
    """
    if metric not in METRICS and not is_verdict(metric) and metric not in LATENCY_METRICS:
        return []
    found = scored_rows(rows, metric, category, protocol)
    highest_first = metric in LATENCY_METRICS or not higher_is_better(metric)
    return sorted(found, key=lambda pair: pair[1], reverse=highest_first)[:count]


def read_questions(run_dir: Path | None, chosen: Sequence[tuple[ScoreRow, float]]) -> list[ExplainedQuestion]:
    """Read texts and evidence of some questions.

    Args:
        run_dir: the run; ``None`` where there is only a summary, which holds no text.
        chosen: questions with their scores.
    """
    if run_dir is None:
        return [
            ExplainedQuestion(row.question_id, row.category, row.kind, score, {}, has_texts=False)
            for row, score in chosen
        ]
    references, answers = load_references(run_dir), load_answers(run_dir)
    retrievals = load_retrievals(run_dir)
    return [
        _asked(row, score, references[row.question_id], answers.get(row.question_id), retrievals.get(row.question_id))
        for row, score in chosen
    ]


def _asked(
    row: ScoreRow,
    score: float,
    reference: ReferenceRecord,
    answer: AnswerRecord | None,
    retrieval: RetrievalRecord | None,
) -> ExplainedQuestion:
    return ExplainedQuestion(
        row.question_id,
        row.category,
        row.kind,
        score,
        evidence_ranks(reference, retrieval),
        question=answer.question if answer else str(retrieval.trace.get("query", "")) if retrieval else "",
        gold=gold_answers(reference),
        answer=answer.prediction if answer else None,
        retrieved=retrieval is not None and (retrieval.ranked or bool(retrieval.hits)),
    )


def evidence_ranks(reference: ReferenceRecord, retrieval: RetrievalRecord | None) -> dict[str, int | None]:
    """Return the gold turn id -> rank from 1 of the first memory that comes from it, ``None`` when no memory does."""
    ranks: dict[str, int] = {}
    for place, hit in enumerate(retrieval.hits if retrieval else (), start=1):
        for turn_id in hit.turn_ids:
            ranks.setdefault(turn_id, place)
    return {turn_id: ranks.get(turn_id) for turn_id in reference.evidence}


def is_trap(kind: str) -> bool:
    """Return whether the gold of a kind of question is a false answer."""
    return kind == ADVERSARIAL
