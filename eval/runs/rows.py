"""The rows of a run's files as records; a malformed one is named with file, line, field and remedy."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from eval.metrics.text import as_text
from eval.runs.files import WHOLE, read_json_lines
from eval.runs.records import AnswerRecord, ReferenceRecord, SettledRecord
from memsys.errors import MemsysError, RunDirectoryError
from memsys.rows import RowError, record_from

R = TypeVar("R")

RESUMES = "restore the file, or delete this line and those behind it and start the run's command again: it resumes"


def read_rows(
    path: Path,
    kind: type[R],
    *,
    error: type[MemsysError] = RunDirectoryError,
    advice: str = RESUMES,
    prepare: Callable[[Any], Any] | None = None,
    unique: str = "",
) -> Iterator[R]:
    """Yield the rows of a JSON-lines file as records; none when it does not exist.

    Args:
        path: the file.
        kind: dataclass of a row.
        error: what is raised for a row that is none.
        advice: what to do then.
        prepare: changes a row before it is read, for what older versions wrote otherwise.
        unique: a field whose value no two rows may share.

    Raises:
        MemsysError: ``error``, with file, line and field; a line that is not JSON is a ``RunDirectoryError``.
    """
    seen: dict[Any, int] = {}
    for number, row in enumerate(read_json_lines(path, advice), start=1):
        try:
            record = record_from(kind, prepare(row) if prepare else row)
        except (RowError, ValueError) as problem:
            raise error(f"{path}:{number} does not fit this version ({problem}); {advice}") from problem
        if unique and (first := seen.setdefault(getattr(record, unique), number)) != number:
            shared = getattr(record, unique)
            raise error(f"{path}:{number} repeats {unique} {shared!r} of line {first}; {advice}")
        yield record


def answers(path: Path, error: type[MemsysError] = RunDirectoryError) -> Iterator[AnswerRecord]:
    """Return the rows of ``answers.jsonl``; a prediction that is a number becomes its text."""
    return read_rows(path, AnswerRecord, error=error, prepare=lambda row: _as_texts(row, "prediction"))


def settled(path: Path, error: type[MemsysError] = RunDirectoryError) -> Iterator[SettledRecord]:
    """Return the rows of ``settled.jsonl``."""
    return read_rows(path, SettledRecord, error=error, unique="question_id")


def references(path: Path, error: type[MemsysError] = RunDirectoryError) -> Iterator[ReferenceRecord]:
    """Return the rows of ``references.jsonl``; gold that is a number becomes its text."""
    return read_rows(path, ReferenceRecord, error=error, prepare=lambda row: _as_texts(row, "answers"))


def ledger(path: Path, kind: type[R], error: type[MemsysError] = RunDirectoryError) -> Iterator[R]:
    """Return the rows of what was paid or failed (calls, embeddings, failures); a gap would make sums wrong."""
    return read_rows(path, kind, error=error, advice=WHOLE)


def _as_texts(row: Any, name: str) -> Any:
    """Write plain values of a field, or of the list in it, as texts; anything else is left to the check."""
    if not isinstance(row, Mapping) or name not in row:
        return row
    value = row[name]
    return {**row, name: [_as_text(one) for one in value] if isinstance(value, list) else _as_text(value)}


def _as_text(value: Any) -> Any:
    return as_text(value) if value is None or isinstance(value, int | float) else value
