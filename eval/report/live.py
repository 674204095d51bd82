"""Runs that have not ended, from their files alone: how far they are, and the newest answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import find_metric, scale_of
from eval.report.config import PageConfig
from eval.runs.exports import is_exported_run
from eval.runs.files import rows_done
from eval.runs.load import load_answers, load_references, read_record
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.scoring.answers import answer_scores
from eval.scoring.means import mean_or_none

#: Statuses of a run that continues by itself.
NOT_SCORED = "answered, not scored yet"
GOING = ("running", NOT_SCORED)


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """One answer of a run on its way: question, gold answers, and the score in percent where there is a gold answer."""

    question: str
    gold: str
    answer: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run on its way, or one that was stopped.

    Attributes:
        system: name of its memory.
        backbone: name of its backbone.
        status: as its record says.
        asked: questions it has to answer; 0 before they are known.
        answered: questions that it has answered.
        written: conversations whose memory is written.
        changed: seconds since the epoch of its last row.
        folder: its directory.
    """

    system: str
    backbone: str
    status: str
    asked: int
    answered: int
    written: int
    changed: float
    folder: Path


def unfinished(folders: Iterable[Path]) -> list[Unfinished]:
    """Return the runs whose record does not say ``complete``, or that have no scores yet."""
    found = []
    for folder in folders:
        record = read_record(folder)
        if record.get("status") == "complete" and (is_exported_run(folder) or (folder / "scores.jsonl").is_file()):
            continue
        config = record.get("config") or {}
        status = NOT_SCORED if record.get("status") == "complete" else str(record.get("status"))
        found.append(
            Unfinished(
                str((config.get("memory") or {}).get("name", "")),
                str((config.get("backbone") or {}).get("name", "")),
                status,
                _lines(folder / "references.jsonl"),
                rows_done(folder, str(record.get("mode"))),
                _lines(folder / "conversations.jsonl"),
                max((path.stat().st_mtime for path in folder.glob("*.jsonl")), default=0.0),
                folder,
            )
        )
    return found


def answers_so_far(folder: Path, config: PageConfig) -> tuple[int, float | None, list[LiveAnswer]]:
    """Return the number of answers, the mean score of those with a gold answer, and the newest, the last one first.

    Raises:
        ScoringError: a file is broken.
    """
    if not _lines(folder / "answers.jsonl"):
        return 0, None, []
    gold = load_references(folder)
    found = [_scored(answer, gold[name], config.live_score) for name, answer in load_answers(folder).items()]
    score = mean_or_none(one.score for one in found if one.score is not None)
    return len(found), score, found[: -config.live - 1 : -1]


def _scored(answer: AnswerRecord, reference: ReferenceRecord, metric: str) -> LiveAnswer:
    known = [] if reference.kind == ADVERSARIAL or not reference.answers else [find_metric(metric)]
    score = answer_scores(answer, reference, known).get(metric)
    gold = " | ".join(reference.answers) or "none: the conversation does not tell"
    return LiveAnswer(answer.question, gold, answer.prediction, None if score is None else scale_of(metric) * score)


def _lines(path: Path) -> int:
    """Return whole lines; a line that is being written is not counted."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0
