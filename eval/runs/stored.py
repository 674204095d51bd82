"""Reading a run directory back into records: strict about ids and fields, so that nothing is scored by accident."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from eval.runs import rows
from eval.runs.manifest import check_file
from eval.runs.records import (
    AnswerRecord,
    ConversationRecord,
    ReferenceRecord,
    RetrievalRecord,
    SettledRecord,
    UpdatesRecord,
)
from eval.runs.rundir import JUDGING
from memsys.errors import ScoringError
from memsys.llm.ledger import CallRecord


class _Keyed(Protocol):
    @property
    def question_id(self) -> str: ...

    @property
    def conversation_id(self) -> str: ...

    @property
    def category(self) -> int: ...


R = TypeVar("R")
K = TypeVar("K", bound=_Keyed)


def load_json(path: Path) -> dict[str, Any]:
    """Read a JSON file of the run directory, which holds an object.

    Raises:
        ScoringError: it is missing, no JSON, or no object.
        RunDirectoryError: it is not as it was written.
    """
    again = f"run `memsys score {path.parent}`"
    advice = again if path.name.startswith("scores") else "restore it, or start the run's command again"
    check_file(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ScoringError(f"{path} cannot be read ({error}); {advice}") from error
    if not isinstance(found, dict):
        raise ScoringError(f"{path} holds no JSON object; {advice}")
    return found


def is_recorded(run_dir: Path) -> bool:
    """Return whether the answers were imported from elsewhere, so that calls, times and retrievals are unknown."""
    path = run_dir / "run.json"
    return path.is_file() and bool(load_json(path).get("recorded"))


def data_sha256(run_dir: Path) -> str:
    """Return the checksum of the data that a run asked; empty where it names none."""
    path = run_dir / "run.json"
    data = load_json(path).get("data") if path.is_file() else None
    return str(data.get("sha256", "")) if isinstance(data, Mapping) else ""


def load_references(run_dir: Path) -> dict[str, ReferenceRecord]:
    """Return the gold by question id, in the run's order.

    Raises:
        ScoringError: there is none, or an id occurs twice.
    """
    if not run_dir.is_dir():
        kind = "is a file" if run_dir.exists() else "does not exist"
        raise ScoringError(
            f"{run_dir} {kind} and has no references.jsonl; name run directories, which `memsys run` wrote"
        )
    references = _by_question(rows.references(run_dir / "references.jsonl", ScoringError), run_dir / "references.jsonl")
    if not references:
        raise ScoringError(
            f"{run_dir} has no references.jsonl: it is not a run directory, or its run never "
            "started; of a folder of runs, name each"
        )
    return references


def load_updates(run_dir: Path) -> dict[str, dict[str, str]]:
    """Return the overruled turns of each conversation, each with the turn that holds in its place.

    Conversations of which the run does not say it are not there: runs of data sets without updates, and of older
    versions.

    Raises:
        ScoringError: a row does not fit its record, or a conversation occurs twice.
    """
    path = run_dir / "updates.jsonl"
    found = rows.read_rows(path, UpdatesRecord, error=ScoringError, unique="conversation_id")
    return {
        record.conversation_id: {turn: group[-1] for group in record.updates for turn in group[:-1]} for record in found
    }


def load_answers(run_dir: Path) -> dict[str, AnswerRecord]:
    """Return the answers by question id; none in a retrieval-only run.

    Raises:
        ScoringError: an id occurs twice, or a row does not fit its record.
    """
    return _by_question(rows.answers(run_dir / "answers.jsonl", ScoringError), run_dir / "answers.jsonl")


def load_settled(run_dir: Path) -> dict[str, SettledRecord]:
    """Return the questions closed without an answer, by id.

    Raises:
        ScoringError: a row does not fit its record, or an id occurs twice.
    """
    return {row.question_id: row for row in rows.settled(run_dir / "settled.jsonl", ScoringError)}


def load_retrievals(run_dir: Path) -> dict[str, RetrievalRecord]:
    """Return the retrievals by question id.

    Raises:
        ScoringError: an id occurs twice, or a row does not fit its record.
    """
    return _by_question(_rows(run_dir / "retrievals.jsonl", RetrievalRecord), run_dir / "retrievals.jsonl")


def load_conversations(run_dir: Path) -> list[ConversationRecord]:
    """Return the ingested conversations."""
    return list(_rows(run_dir / "conversations.jsonl", ConversationRecord))


def load_calls(run_dir: Path) -> list[CallRecord]:
    """Return the requests to the backbone.

    Raises:
        ScoringError: a row does not fit its record, or a complete run has fewer than it counted.
    """
    calls = list(rows.ledger(run_dir / "calls.jsonl", CallRecord, ScoringError))
    path = run_dir / "run.json"
    record = load_json(path) if path.is_file() else {}
    if record.get("status") == "complete":
        lost = lost_calls(run_dir, sum(call.phase != JUDGING for call in calls), record)
        if lost:
            raise ScoringError(lost)
    return calls


def lost_calls(run_dir: Path, held: int, record: Mapping[str, Any]) -> str:
    """Say that the ledger of a complete run lacks calls, and what to do: which they were, no other file says.

    Args:
        run_dir: of the run.
        held: number of calls in its ``calls.jsonl``, those of judges left out.
        record: its ``run.json``.

    Returns:
        The message; empty where none is lost.
    """
    counts = record.get("counts")
    wanted = counts.get("calls") if isinstance(counts, Mapping) else 0
    if not isinstance(wanted, int) or held >= wanted:
        return ""
    return (
        f"{run_dir / 'calls.jsonl'} holds {held} of the {wanted} calls that run.json counts; restore the file that "
        "is not this run's or has lost rows, or delete the run directory and start again: replies come from the cache"
    )


def _rows(path: Path, kind: type[R]) -> Iterator[R]:
    return rows.read_rows(path, kind, error=ScoringError)


def _by_question(records: Iterable[K], path: Path) -> dict[str, K]:
    found: dict[str, K] = {}
    for record in records:
        if record.question_id in found:
            raise ScoringError(f"{path}: question {record.question_id} occurs twice; delete the stray row or run again")
        found[record.question_id] = record
    return found


def check_joined(records: Mapping[str, K], references: Mapping[str, ReferenceRecord], path: Path) -> None:
    """Refuse records of other questions than the run's.

    Raises:
        ScoringError: unknown question, or another conversation or category than the reference's.
    """
    for question_id, record in records.items():
        reference = references.get(question_id)
        if reference is None:
            raise ScoringError(f"{path}: question {question_id} is not in references.jsonl; the files are of two runs")
        here, there = (record.conversation_id, record.category), (reference.conversation_id, reference.category)
        if here != there:
            raise ScoringError(
                f"{path}: question {question_id} has conversation and category {here}, references.jsonl has {there}; "
                "the files are of two runs"
            )


def missing(wanted: Sequence[str], present: Mapping[str, object]) -> list[str]:
    """Return the ids of ``wanted`` that ``present`` lacks."""
    return [question_id for question_id in wanted if question_id not in present]
