"""The run directory: who may write it, what is in it, and when it may be resumed."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from eval.files import JsonLines, read_json_lines, write_atomic, write_json
from eval.records import SCHEMA_VERSION, AnswerRecord, ConversationRecord, ReferenceRecord, RetrievalRecord
from memsys.errors import RunDirectoryError
from memsys.llm.contract import CallRecord
from memsys.vocabulary import Json

_LOCK_POLL_SECONDS = 0.5

Status = Literal["running", "complete", "incomplete", "interrupted"]


@dataclass(slots=True)
class RunRecord:
    """``run.json``: everything that says where the numbers of this run come from.

    ``identity`` is what must agree for a resume: resolved config without the fields that cannot change a result,
    data checksum, and model fingerprint. ``config`` is the whole resolved config.
    """

    run_id: str
    experiment: str
    seed: int
    mode: str
    config: Mapping[str, Json]
    identity: Mapping[str, Json]
    data: Mapping[str, Json]
    model: Mapping[str, Json]
    commit: str | None
    dirty: bool | None
    packages: Mapping[str, str]
    hardware: Mapping[str, Json]
    started: str
    status: Status = "running"
    finished: str | None = None
    resumed: int = 0
    schema_version: int = SCHEMA_VERSION
    prompts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Json] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def now() -> str:
    """UTC time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def identity_hash(identity: Mapping[str, Json]) -> str:
    """Eight hex digits that differ when a result-changing setting differs."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Name the settings in which two trees differ, as ``path: old -> new``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines: list[str] = []
        for key in sorted({*old, *new}):
            lines += differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        return lines
    return [] if old == new else [f"{path}: {json.dumps(old)} -> {json.dumps(new)}"]


def read_record(run_dir: Path) -> dict[str, Any] | None:
    """``run.json`` of a run directory as stored, or ``None``.

    Raises:
        RunDirectoryError: it is not JSON.
    """
    path = run_dir / "run.json"
    if not path.is_file():
        return None
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}); delete the run directory or restore it") from error
    return stored


class RunDirectory:
    """One run's files, opened by one process at a time.

    Args:
        path: made if it does not exist.
        wait_s: seconds to wait for another process that has it open.
    """

    def __init__(self, path: Path, *, wait_s: float = 0.0) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            message = f"cannot open run directory {path}: {error.strerror}; choose another run_dir or runs_dir"
            raise RunDirectoryError(message) from error
        self._take_lock(wait_s)
        self._closed = False
        self._answers = JsonLines(path / "answers.jsonl")
        self._retrievals = JsonLines(path / "retrievals.jsonl")
        self._conversations = JsonLines(path / "conversations.jsonl")
        self._calls = JsonLines(path / "calls.jsonl")
        self._known_calls = {_call_identity(row) for row in read_json_lines(path / "calls.jsonl")}

    def _take_lock(self, wait_s: float) -> None:
        deadline = time.monotonic() + wait_s
        try:
            while not self._locked():
                if time.monotonic() > deadline:
                    raise BlockingIOError
                time.sleep(_LOCK_POLL_SECONDS)
        except BlockingIOError as error:
            owner = os.read(self._lock, 64).decode().strip()
            os.close(self._lock)
            message = f"run directory {self.path} is in use by process {owner}; wait for it or choose another run_dir"
            raise RunDirectoryError(message) from error
        except OSError as error:
            os.close(self._lock)
            raise RunDirectoryError(
                f"the disk of {self.path} cannot lock files ({error.strerror}); set runs_dir to a folder elsewhere"
            ) from error
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def begin(self, record: RunRecord) -> RunRecord:
        """Start the run or take it up again.

        Returns:
            The record to keep updating: the stored one, when the directory holds a run of the same identity.

        Raises:
            RunDirectoryError: the directory holds a run with other settings, or of another schema.
        """
        stored = self.stored_record()
        if stored is not None:
            self._check_same(stored, record)
            record.started, record.prompts = stored["started"], dict(stored["prompts"])
            record.resumed = stored["resumed"] + 1
        self.save(record)
        return record

    def stored_record(self) -> dict[str, Any] | None:
        """``run.json`` as stored, or ``None``."""
        return read_record(self.path)

    def _check_same(self, stored: Mapping[str, Any], record: RunRecord) -> None:
        if stored["schema_version"] != SCHEMA_VERSION:
            raise RunDirectoryError(
                f"{self.path} was written with schema {stored['schema_version']}, this version writes "
                f"{SCHEMA_VERSION}; choose another run_dir"
            )
        changed = differences(stored["identity"], json.loads(json.dumps(record.identity)))
        if changed:
            raise RunDirectoryError(
                f"{self.path} holds a run with other settings; choose another run_dir or restore: " + "; ".join(changed)
            )

    def save(self, record: RunRecord) -> None:
        """Write ``run.json``."""
        write_json(self.path / "run.json", asdict(record))

    def write_references(self, records: Iterable[ReferenceRecord]) -> None:
        """Copy the run's gold into the directory (once), so that scoring needs no data set."""
        lines = [json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n" for record in records]
        write_atomic(self.path / "references.jsonl", b"".join(lines))

    def add_call(self, record: CallRecord) -> None:
        """Append to the ledger; a call that a resumed run repeats from the cache is not booked twice."""
        row = _row(record)
        identity = _call_identity(row)
        if identity not in self._known_calls:
            self._known_calls.add(identity)
            self._calls.append(row)

    def add_conversation(self, record: ConversationRecord) -> None:
        """Append one ingested conversation."""
        self._conversations.append(_row(record))

    def add_retrieval(self, record: RetrievalRecord) -> None:
        """Append what one question retrieved."""
        self._retrievals.append({**_row(record), "hits": [_row(hit) for hit in record.hits]})

    def add_answer(self, record: AnswerRecord) -> None:
        """Append one answer. Its retrieval must have been added before, so that no answer lacks one."""
        self._answers.append(_row(record))

    def finished_questions(self, mode: str) -> set[str]:
        """Ids of the questions that need not be asked again; stray retrievals without an answer are dropped."""
        name = "retrievals.jsonl" if mode == "retrieval_only" else "answers.jsonl"
        done = {row["question_id"] for row in read_json_lines(self.path / name)}
        if mode != "retrieval_only":
            self._drop_retrievals_except(done)
        return done

    def _drop_retrievals_except(self, done: set[str]) -> None:
        path = self.path / "retrievals.jsonl"
        rows = list(read_json_lines(path))
        kept = [row for row in rows if row["question_id"] in done]
        if len(kept) == len(rows):
            return
        self._retrievals.close()
        write_atomic(path, b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in kept))
        self._retrievals = JsonLines(path)

    def ingested_conversations(self) -> set[str]:
        """Ids of the conversations whose record is stored."""
        return {row["conversation_id"] for row in read_json_lines(self.path / "conversations.jsonl")}

    def snapshot_path(self, conversation_id: str) -> Path:
        """File of one conversation's memory snapshot."""
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in conversation_id)
        return self.path / "snapshots" / f"{safe}.npz"

    def close(self) -> None:
        """Close the files and give the directory free; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for file in (self._answers, self._retrievals, self._conversations, self._calls):
            file.close()
        os.close(self._lock)


def _row(record: Any) -> dict[str, Any]:
    """Fields of a slotted dataclass. ``asdict`` would copy every leaf, a tenth of a millisecond for each question."""
    return {name: getattr(record, name) for name in record.__slots__}


def _call_identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["conversation_id"], row["phase"], row["role"], row["key"], row["attempt"])
