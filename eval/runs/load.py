"""Read what a run folder or an exported run holds: the one module that opens the files of finished and live runs.

Rows are read strictly, by id and field, so that nothing is scored by accident. :mod:`eval.results.frame` makes runs and
data frames of them; :mod:`eval.runs.exports` holds the format of exported runs, :mod:`eval.runs.rundir` takes runs up.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from eval.runs import exports, rows
from eval.runs.embeddings import EMBEDDINGS, EmbeddingRecord
from eval.runs.exports import is_exported_run
from eval.runs.manifest import DERIVED, RUN, check_file
from eval.runs.records import (
    JUDGING,
    SCHEMA_VERSION,
    AnswerRecord,
    ConversationRecord,
    ReferenceRecord,
    RetrievalRecord,
    ScoreRow,
    SettledRecord,
    UpdatesRecord,
)
from eval.runs.run_json import RunRecord
from memsys.errors import MemsysError, RunDirectoryError, ScoringError
from memsys.llm.ledger import CallRecord
from memsys.rows import RowError, check_fields

SCORES, SCORES_META, SUMMARY = DERIVED
#: What the scores depend on; their checksums tell stale scores from fresh ones.
INPUTS = ("answers.jsonl", "settled.jsonl", "retrievals.jsonl", "references.jsonl", "updates.jsonl")
#: Checksum of a file without rows.
_NO_ROWS = hashlib.sha256(b"").hexdigest()
#: Fields of ``run.json`` without which a run cannot be taken up, and those that every reader of a run needs.
_RESUMABLE = ("schema_version", "status", "identity", "started", "prompts", "resumed")
_DESCRIBED = ("schema_version", "run_id", "status", "started", "config", "mode", "data")


class _Keyed(Protocol):
    @property
    def question_id(self) -> str: ...

    @property
    def conversation_id(self) -> str: ...

    @property
    def category(self) -> int: ...


R = TypeVar("R")
K = TypeVar("K", bound=_Keyed)


def load_json(path: Path, error: type[MemsysError] = ScoringError) -> dict[str, Any]:
    """Read a JSON file of a run folder, which holds an object.

    Args:
        path: the file.
        error: what is raised for a file that cannot be read.

    Raises:
        MemsysError: ``error``: it is missing, not JSON, or not an object.
        RunDirectoryError: it is not as it was written.
    """
    again = f"run `memsys score {path.parent}`"
    advice = again if path.name in DERIVED else "restore it, or start the run's command again"
    check_file(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise error(f"{path} cannot be read ({problem}); {advice}") from problem
    except (ValueError, RecursionError) as problem:
        raise error(f"{path} is not JSON ({problem}); {advice}") from problem
    if not isinstance(found, dict):
        raise error(f"{path} is not a JSON object; {advice}")
    return found


def find_record(run_dir: Path) -> dict[str, Any] | None:
    """Read ``run.json`` of a run folder that may be taken up again; ``None`` if there is none.

    Raises:
        RunDirectoryError: it is not as it was written or not JSON, or a field is missing or of another type.
    """
    path = run_dir / RUN
    check_file(path)
    return _fitting(load_json(path, RunDirectoryError), path, _RESUMABLE) if path.is_file() else None


def read_record(path: Path) -> Mapping[str, Any]:
    """Read the record of a run folder or of an exported run.

    Raises:
        RunDirectoryError: there is no run, its record is damaged, or it does not fit this version.
    """
    if is_exported_run(path):
        record = exports.read_record(path)
    elif not (path / RUN).is_file():
        check_file(path / RUN)
        raise RunDirectoryError(f"{path} holds no {RUN}; name a run directory that `memsys run` wrote")
    else:
        record = load_json(path / RUN, RunDirectoryError)
    _fitting(record, path / RUN, _DESCRIBED)
    if record["schema_version"] != SCHEMA_VERSION:
        raise RunDirectoryError(
            f"{path} was written with schema {record['schema_version']}, this version reads {SCHEMA_VERSION}; "
            "run it again or move it elsewhere"
        )
    return record


def _fitting(record: Mapping[str, Any], path: Path, needed: Sequence[str]) -> dict[str, Any]:
    try:
        return check_fields(RunRecord, record, needed)
    except RowError as error:
        raise RunDirectoryError(
            f"{path} does not fit this version ({error}); restore it, or delete the run directory and start again"
        ) from error


def is_recorded(run_dir: Path) -> bool:
    """Return whether the answers were imported from elsewhere, so that calls, times and retrievals are unknown."""
    return bool(raw_record(run_dir).get("recorded"))


def data_sha256(run_dir: Path) -> str:
    """Return the checksum of the data that a run asked; empty where it names none."""
    data = raw_record(run_dir).get("data")
    return str(data.get("sha256", "")) if isinstance(data, Mapping) else ""


def raw_record(run_dir: Path) -> Mapping[str, Any]:
    """Read ``run.json`` without a check of its fields; empty for a folder of files without one."""
    return load_json(run_dir / RUN) if (run_dir / RUN).is_file() else {}


def load_summary(run_dir: Path) -> dict[str, Any]:
    """Read ``summary.json``; empty for a run that has none."""
    return load_json(run_dir / SUMMARY, RunDirectoryError) if (run_dir / SUMMARY).is_file() else {}


def load_scores(run_dir: Path) -> list[ScoreRow]:
    """Read the stored scores of a run.

    Raises:
        ScoringError: there are none, or answers were added since.
    """
    advice = f"run `memsys score {run_dir}`"
    if not ((run_dir / SCORES_META).is_file() and (run_dir / SCORES).is_file()):
        raise ScoringError(f"{run_dir} has no scores; {advice}")
    inputs = load_json(run_dir / SCORES_META).get("inputs")
    if not isinstance(inputs, dict):
        raise ScoringError(f"{run_dir / SCORES_META} names no inputs; {advice}")
    changed = changed_inputs(inputs, checksums(run_dir))
    if changed:
        raise ScoringError(f"{run_dir}: {', '.join(changed)} changed since the scores were made; {advice}")
    return score_rows(run_dir)


def score_rows(run_dir: Path) -> list[ScoreRow]:
    """Read the rows of ``scores.jsonl``, whatever they were made of.

    Raises:
        ScoringError: a row does not fit its record, or an id occurs twice.
    """
    advice = f"run `memsys score {run_dir}`"
    return list(rows.read_rows(run_dir / SCORES, ScoreRow, error=ScoringError, advice=advice, unique="question_id"))


def checksums(run_dir: Path) -> dict[str, str | None]:
    """Return sha256 of the files that scores depend on, ``None`` for one that does not exist."""
    return {name: _sha256(run_dir / name) for name in INPUTS}


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def changed_inputs(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> list[str]:
    """Name the files whose content has changed.

    A file without rows counts as one that does not exist: opening a run, as judging does, makes what it lacks.

    Args:
        before: as :func:`checksums` gave them.
        now: likewise.
    """
    return [name for name, digest in now.items() if (digest or _NO_ROWS) != (before.get(name) or _NO_ROWS)]


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

    Conversations of data sets without updates are not there.

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
    record = raw_record(run_dir)
    if record.get("status") == "complete":
        lost = lost_calls(run_dir, sum(call.phase != JUDGING for call in calls), record)
        if lost:
            raise ScoringError(lost)
    return calls


def load_embeddings(run_dir: Path) -> Iterator[EmbeddingRecord] | None:
    """Read what an embedder was paid for; ``None`` for a run whose embedder is not paid by the token."""
    path = run_dir / EMBEDDINGS
    return rows.ledger(path, EmbeddingRecord) if path.is_file() else None


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
