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

from eval.runs import rows
from eval.runs.files import JsonLines, read_json_lines, write_atomic, write_json
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ConversationRecord, ReferenceRecord, RetrievalRecord
from eval.runs.snapshots import Snapshots
from memsys.errors import RunDirectoryError
from memsys.llm.ledger import CallRecord
from memsys.rows import RowError, check_fields
from memsys.vocabulary import Json

_LOCK_POLL_SECONDS = 0.5
#: Of the settings in which two runs differ, as an error shows them.
_MOST_LINES, _LINE_CHARS = 3, 120

#: Fields of ``run.json`` without which a run cannot be taken up.
_NEEDED = ("schema_version", "status", "identity", "started", "prompts", "resumed")

Status = Literal["running", "complete", "incomplete", "interrupted"]


@dataclass(slots=True)
class RunRecord:
    """``run.json``: everything that says where the numbers of this run come from.

    ``identity`` is what must agree for a resume: resolved config without the fields that cannot change a result,
    data checksum, and model fingerprint. ``config`` is the whole resolved config. ``departures`` names where the memory
    departs from its paper or release (:mod:`eval.papers.departures`); ``None`` where its system does not say.
    ``prompt_sources`` says of each role whether its prompt is the authors', from which file and with which checksums,
    or why not (:mod:`eval.configs.prompt_choice`); ``None`` where all wording is ours.
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
    departures: list[dict[str, Json]] | None = None
    #: where the answers come from, if they were recorded elsewhere (:mod:`eval.recorded.importing`)
    recorded: dict[str, Json] | None = None
    prompt_sources: list[dict[str, Json]] | None = None
    #: seconds that loading took, by part (``backbone``, ``embedder``), in the process that wrote this last
    loading: dict[str, float] = field(default_factory=dict)


#: Differences that an error lists, and characters of each.
_LISTED, _LINE_CHARS = 6, 100


def now() -> str:
    """UTC time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def identity_hash(identity: Mapping[str, Json]) -> str:
    """Eight hex digits that differ when a result-changing setting differs."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]


def without_name(part: Any) -> Any:
    """Copy a part's settings without the name it is shown by, and of a gate without that of its host."""
    if not isinstance(part, Mapping):
        return part
    return {key: without_name(value) if key == "host" else value for key, value in part.items() if key != "name"}


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Name the settings in which two trees differ, as ``path: old -> new``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines: list[str] = []
        for key in sorted({*old, *new}):
            lines += differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        return lines
    return [] if old == new else [f"{path}: {json.dumps(old)} -> {json.dumps(new)}"]


def listed(changed: list[str]) -> str:
    """A line for each difference, long values cut, and of many only the first few."""
    lines = [f"  {one if len(one) <= _LINE_CHARS else f'{one[:_LINE_CHARS]} ...'}" for one in changed[:_LISTED]]
    more = len(changed) - _LISTED
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)


def read_record(run_dir: Path) -> dict[str, Any] | None:
    """``run.json`` of a run directory as stored, or ``None``.

    Raises:
        RunDirectoryError: it is not JSON, or a field is missing or of another type.
    """
    path = run_dir / "run.json"
    if not path.is_file():
        return None
    try:
        return check_fields(RunRecord, json.loads(path.read_text(encoding="utf-8")), _NEEDED)
    except RowError as error:
        raise RunDirectoryError(
            f"{path} does not fit this version ({error}); restore it, or delete the run directory and start again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}); delete the run directory or restore it") from error


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
        self._run = ""
        self._answers = JsonLines(path / "answers.jsonl")
        self._retrievals = JsonLines(path / "retrievals.jsonl")
        self._conversations = JsonLines(path / "conversations.jsonl")
        self._calls = JsonLines(path / "calls.jsonl")
        self._known_calls = self._booked_calls()

    def _booked_calls(self) -> set[tuple[Any, ...]]:
        try:
            return {_call_identity(call) for call in rows.read_rows(self.path / "calls.jsonl", CallRecord)}
        except RunDirectoryError:
            self.close()
            raise

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
        self._run = hashlib.sha256(json.dumps(record.identity, sort_keys=True).encode()).hexdigest()
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
                f"{self.path} holds a run with other settings (run.json); choose another run_dir or restore these:\n"
                + listed(changed)
            )

    def save(self, record: RunRecord) -> None:
        """Write ``run.json``."""
        write_json(self.path / "run.json", asdict(record))

    def change_config(self, parts: Mapping[str, Json]) -> list[str]:
        """Replace parts of the recorded configuration that cannot change an answer.

        Returns:
            What changed, as ``setting: old -> new``; then ``run.json`` was written.
        """
        stored = self.stored_record()
        if stored is None:
            return []
        before = {key: stored["config"].get(key) for key in parts}
        changed = differences(before, parts)
        if changed:
            write_json(self.path / "run.json", {**stored, "config": {**stored["config"], **parts}})
        return changed

    def write_references(self, records: Iterable[ReferenceRecord]) -> bool:
        """Copy the run's gold into the directory, so that scoring needs no data set; returns whether it was lacking."""
        lines = [json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n" for record in records]
        path, content = self.path / "references.jsonl", b"".join(lines)
        if path.is_file() and path.read_bytes() == content:
            return False
        write_atomic(path, content)
        return True

    @property
    def booked_calls(self) -> int:
        """Calls in the ledger."""
        return len(self._known_calls)

    def add_call(self, record: CallRecord) -> None:
        """Append to the ledger; a call that a resumed run repeats from the cache is not booked twice."""
        identity = _call_identity(record)
        if identity not in self._known_calls:
            self._known_calls.add(identity)
            self._calls.append(_row(record))

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
        """Ids of the questions that need not be asked again.

        In a run that answers, a question is finished when its retrieval and its answer are stored; one without the
        other is dropped.

        Raises:
            RunDirectoryError: a row is damaged, or a question occurs twice.
        """
        retrieved = self._question_ids("retrievals.jsonl", rows.read_rows(self._file("retrievals"), RetrievalRecord))
        if mode == "retrieval_only":
            return retrieved
        answered = self._question_ids("answers.jsonl", rows.answers(self._file("answers")))
        done = retrieved & answered
        if retrieved != done:
            self._retrievals = self._keep(self._retrievals, done)
        if answered != done:
            self._answers = self._keep(self._answers, done)
        return done

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.jsonl"

    def _question_ids(self, name: str, records: Iterable[AnswerRecord | RetrievalRecord]) -> set[str]:
        found: set[str] = set()
        for record in records:
            if record.question_id in found:
                raise RunDirectoryError(
                    f"{self.path / name}: question {record.question_id} occurs twice; delete the stray row and start "
                    "the run's command again"
                )
            found.add(record.question_id)
        return found

    def _keep(self, file: JsonLines, done: set[str]) -> JsonLines:
        """Drop the rows of all other questions from a file."""
        kept = [row for row in read_json_lines(file.path) if row["question_id"] in done]
        file.close()
        write_atomic(file.path, b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in kept))
        return JsonLines(file.path)

    def ingested_conversations(self) -> set[str]:
        """Ids of the conversations whose record is stored.

        Raises:
            RunDirectoryError: a row is damaged.
        """
        return {row.conversation_id for row in rows.read_rows(self._file("conversations"), ConversationRecord)}

    def snapshots(self, conversation_ids: Iterable[str]) -> Snapshots:
        """Memory snapshots of the run's conversations."""
        return Snapshots(self.path / "snapshots", self._run, conversation_ids)

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


def _call_identity(call: CallRecord) -> tuple[Any, ...]:
    """What makes a call the same when a resumed run repeats it.

    The item belongs to it: two questions may ask for the same thing, and which of them asks first depends on timing.
    """
    return (call.conversation_id, call.phase, call.role, call.key, call.item, call.attempt)
