"""Exported runs: a folder for each experiment, with the scores of its runs as Parquet and a line of JSON for each run.

``results/summaries/<experiment>/scores.parquet`` has a row for each question of each run, in the order of the runs and
of their questions: the run's name, ``question_id``, ``conversation_id``, ``category``, ``kind`` and a column for each
metric (64 bits; NaN where there was nothing to score, null where the metric was not computed). ``runs.jsonl`` has the
records of the runs, and ``manifest.json`` the sha256 of both files: one that is not as it was written is refused. An
exported run is addressed as ``<folder>/<name>``, as if it were a folder of its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.runs.files import write_atomic, write_json
from eval.runs.manifest import MANIFEST
from eval.runs.records import ScoreRow
from memsys.errors import RunDirectoryError

RUNS_FILE, SCORES_FILE = "runs.jsonl", "scores.parquet"
#: Columns that are no metric.
_ABOUT = ("run", "question_id", "conversation_id", "category", "kind")
_NAN = float("nan")
_Floats = NDArray[np.float64]
#: The rows of a run, and its columns by metric.
_Scores = tuple[list[ScoreRow], Mapping[str, _Floats]]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """An exported run.

    Attributes:
        record: reduced ``run.json``.
        meta: ``scores_meta.json``.
        summary: ``summary.json``; empty where the run has none.
        rows: scores of its questions.
        columns: scores of each metric, shape (rows,); NaN for none. A run to be written needs none.
    """

    record: Mapping[str, Any]
    meta: Mapping[str, Any]
    summary: Mapping[str, Any]
    rows: Sequence[ScoreRow]
    columns: Mapping[str, _Floats] = field(default_factory=dict, compare=False, repr=False)


def is_export(folder: Path) -> bool:
    """Return whether a folder holds exported runs."""
    return (folder / RUNS_FILE).is_file()


def is_exported_run(path: Path) -> bool:
    """Return whether a path addresses an exported run."""
    return is_export(path.parent) and path.name in _records(path.parent)


def exported_runs(folder: Path) -> list[Path]:
    """Return the addresses of the exported runs of a folder, sorted.

    Raises:
        RunDirectoryError: a file is damaged.
    """
    return sorted(folder / name for name in _records(folder))


def read_record(path: Path) -> Mapping[str, Any]:
    """Return the record of an exported run.

    Raises:
        RunDirectoryError: a file is damaged.
    """
    record: Mapping[str, Any] = _records(path.parent)[path.name]["record"]
    return record


def read_export(path: Path) -> ExportedRun:
    """Return an exported run.

    Raises:
        RunDirectoryError: a file is damaged.
    """
    entry = _records(path.parent)[path.name]
    rows, columns = _scores(path.parent).get(path.name, ([], {}))
    return ExportedRun(entry["record"], entry["meta"], entry["summary"], rows, columns)


def write_export(path: Path, run: ExportedRun) -> None:
    """Write an exported run next to the others of its folder; one of its name is replaced.

    Raises:
        RunDirectoryError: the disk is full, or a file of the folder is damaged.
    """
    folder = path.parent
    runs = {each.name: read_export(each) for each in exported_runs(folder)} if is_export(folder) else {}
    write_exports(folder, {**runs, path.name: run})


def write_exports(folder: Path, runs: Mapping[str, ExportedRun]) -> None:
    """Write all runs of a folder, by name.

    Raises:
        RunDirectoryError: the disk is full.
    """
    ordered = sorted(runs.items())
    lines = (
        json.dumps({"run": name, "record": run.record, "meta": run.meta, "summary": run.summary}, **_COMPACT)
        for name, run in ordered
    )
    contents = {
        SCORES_FILE: _parquet((name, row) for name, run in ordered for row in run.rows),
        RUNS_FILE: "".join(f"{line}\n" for line in lines).encode(),
    }
    for name, content in contents.items():
        write_atomic(folder / name, content)
    write_json(folder / MANIFEST, {"files": {name: sha256(content).hexdigest() for name, content in contents.items()}})


_COMPACT: Mapping[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}


def _parquet(rows: Iterable[tuple[str, ScoreRow]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    found = list(rows)
    names = sorted({metric for _, row in found for metric in row.metrics})
    columns: dict[str, Any] = {
        "run": pa.array([run for run, _ in found], pa.string()),
        **{key: pa.array([getattr(row, key) for _, row in found], pa.string()) for key in _ABOUT[1:3]},
        "category": pa.array([row.category for _, row in found], pa.int64()),
        "kind": pa.array([row.kind for _, row in found], pa.string()),
    }
    for name in names:
        values = [_stored(row.metrics[name]) if name in row.metrics else None for _, row in found]
        columns[name] = pa.array(values, pa.float64(), from_pandas=False)
    buffer = BytesIO()
    parquet.write_table(pa.table(columns), buffer, compression="zstd", compression_level=19)
    return buffer.getvalue()


def _stored(value: float | None) -> float:
    return _NAN if value is None else float(value)


def _records(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the lines of ``runs.jsonl`` by run."""
    return _read_records(folder, _state(folder, RUNS_FILE))


def _scores(folder: Path) -> Mapping[str, _Scores]:
    """Return the rows and columns of ``scores.parquet`` by run."""
    found = _read_scores(folder, _state(folder, SCORES_FILE))
    if strange := sorted(found.keys() - _records(folder).keys()):
        raise _damaged(folder / SCORES_FILE, f"it has rows of {strange[0]}, which {RUNS_FILE} does not name")
    return found


def _state(folder: Path, name: str) -> tuple[int, ...]:
    """Return the state of a file and its manifest, which changes with every write."""
    found: list[int] = []
    for path in (folder / name, folder / MANIFEST):
        try:
            status = path.stat()
        except OSError as error:
            raise _damaged(path, error.strerror) from error
        found += (status.st_mtime_ns, status.st_size, status.st_ino)
    return tuple(found)


def _damaged(path: Path, problem: object) -> RunDirectoryError:
    folder, said = path.parent, " ".join(str(problem).split())[:100]
    return RunDirectoryError(
        f"{path} is damaged ({said}); restore the folder (`git checkout -- {folder}`), or delete it and export its "
        "runs again (`memsys export RUN...`)"
    )


def _content(folder: Path, name: str) -> bytes:
    """Return the content of a file as it was written."""
    try:
        known = json.loads((folder / MANIFEST).read_bytes())["files"][name]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(folder / MANIFEST, error) from error
    content = (folder / name).read_bytes()
    if sha256(content).hexdigest() != known:
        raise _damaged(folder / name, f"its sha256 in {MANIFEST} is another")
    return content


@lru_cache(maxsize=64)
def _read_records(folder: Path, _written: tuple[int, ...]) -> Mapping[str, Mapping[str, Any]]:
    try:
        entries = [json.loads(line) for line in _content(folder, RUNS_FILE).splitlines()]
        if not entries:
            raise ValueError("it is empty")
        return {entry["run"]: {key: entry[key] for key in ("record", "meta", "summary")} for entry in entries}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(folder / RUNS_FILE, error) from error


@lru_cache(maxsize=64)
def _read_scores(folder: Path, _written: tuple[int, ...]) -> Mapping[str, _Scores]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(BytesIO(_content(folder, SCORES_FILE)))
        names = [name for name in table.column_names if name not in _ABOUT]
        columns = [table.column(name) for name in (*_ABOUT, *names)]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise _damaged(folder / SCORES_FILE, error) from error
    found: dict[str, _Scores] = {}
    place = 0
    for run, rows in groupby(columns[0].to_pylist()):
        count = sum(1 for _ in rows)
        found[run] = _rows(names, [column.slice(place, count) for column in columns[1:]])
        place += count
    return found


def _rows(names: Sequence[str], columns: Sequence[Any]) -> _Scores:
    """Return the rows of one run, and the column of each metric that it has.

    Args:
        names: of the metrics.
        columns: question, conversation, category, kind, and a column for each metric.
    """
    about, scores = columns[: len(_ABOUT) - 1], columns[len(_ABOUT) - 1 :]
    stored = {name: column for name, column in zip(names, scores, strict=True) if column.null_count < len(column)}
    held = {name: column.to_numpy() for name, column in stored.items()}
    absent = {name: column.is_null().to_numpy() for name, column in stored.items() if column.null_count}
    texts = zip(*(column.to_pylist() for column in about), strict=True)
    rows = [
        ScoreRow(question, conversation, category, _Metrics(held, absent, place), kind)
        for place, (question, conversation, category, kind) in enumerate(texts)
    ]
    return rows, held


class _Metrics(Mapping[str, float | None]):
    """The scores of one question, taken from the columns of its run when they are first asked for."""

    __slots__ = ("_absent", "_columns", "_place", "_taken")

    def __init__(self, columns: Mapping[str, _Floats], absent: Mapping[str, NDArray[np.bool_]], place: int) -> None:
        """Keep where the scores are.

        Args:
            columns: of each metric, shape (rows,); NaN where there is nothing to score.
            absent: of the metrics that some rows do not have, which these are, shape (rows,).
            place: of the question's row.
        """
        self._columns, self._absent, self._place = columns, absent, place
        self._taken: dict[str, float | None] | None = None

    @property
    def _scores(self) -> dict[str, float | None]:
        if self._taken is None:
            place, absent = self._place, self._absent
            found = {
                name: float(column[place])
                for name, column in self._columns.items()
                if name not in absent or not absent[name][place]
            }
            self._taken = {name: None if isnan(value) else value for name, value in found.items()}
        return self._taken

    def __getitem__(self, name: str) -> float | None:
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)
