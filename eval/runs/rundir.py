"""The run directory: who may write it, what is in it, and when it may be resumed."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eval.runs import rows
from eval.runs.embeddings import EMBEDDINGS, EmbeddingRecord
from eval.runs.files import JsonLines, read_json_lines, row_lines, write_atomic, write_json, write_rows
from eval.runs.identity import differences, identity_digest, listed
from eval.runs.load import find_record
from eval.runs.locking import lock_folder
from eval.runs.records import (
    JUDGING,
    SCHEMA_VERSION,
    AnswerRecord,
    ConversationRecord,
    ReferenceRecord,
    RetrievalRecord,
    SettledRecord,
    UpdatesRecord,
)
from eval.runs.row_checksums import first_link
from eval.runs.run_json import RunRecord
from eval.runs.signing import finish_run, reopen, sign_files
from eval.runs.snapshots import Snapshots
from memsys.errors import RunDirectoryError
from memsys.files import remove_temporaries
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json

CALLS = "calls.jsonl"
#: Calls that were paid and are no part of what the method costs: those of the warm-up, those that a resumed run made
#: again because it has no reply cache, and replies that are no completion.
REPEATED_CALLS = "repeated_calls.jsonl"


class CallFolder:
    """A folder with a ledger of calls, opened by one process at a time.

    Args:
        path: made if it does not exist.
        wait_s: seconds to wait for another process that has it open.
        others: names of further files of JSON lines.

    Raises:
        RunDirectoryError: another process has it open, a file cannot be opened, or a row of the ledger is damaged.
    """

    def __init__(self, path: Path, *, wait_s: float = 0.0, others: Sequence[str] = ()) -> None:
        self.path = path
        self._lock = lock_folder(path, wait_s)
        remove_temporaries(path)
        self._closed = False
        #: Told of each call once it is booked; what it raises propagates to the caller.
        self.on_call: Callable[[CallRecord], None] = lambda record: None
        self._files: dict[str, JsonLines] = {}
        try:
            for name in (*others, "calls"):
                self._files[name] = JsonLines(self._file(name))
            self._known_calls = {_call_identity(call) for call in rows.ledger(self._file("calls"), CallRecord)}
        except RunDirectoryError:
            self.close()
            raise

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.jsonl"

    @property
    def booked_calls(self) -> int:
        """Calls of the run in the ledger; those of judges come later and are not counted in ``run.json``."""
        return sum(phase != JUDGING for _, phase, *_ in self._known_calls)

    def add_call(self, record: CallRecord) -> None:
        """Append to the ledger; a call that a resumed run repeats is not booked twice.

        A repeated call that was paid again, and one of the warm-up, goes to :data:`REPEATED_CALLS`, for the budget.
        """
        identity = _call_identity(record)
        if record.phase != "warm_up" and identity not in self._known_calls:
            self._files["calls"].append(_row(record))
            self._known_calls.add(identity)  # behind the row: one that cannot be written is not booked
        elif not record.cache_hit:
            self.add_paid(record)
        self.on_call(record)

    def add_paid(self, record: CallRecord) -> None:
        """Append to :data:`REPEATED_CALLS` a call that counts for the budget alone."""
        if "repeated_calls" not in self._files:
            self._files["repeated_calls"] = JsonLines(self.path / REPEATED_CALLS)
        self._files["repeated_calls"].append(_row(record))

    def close(self) -> None:
        """Close the files and give the folder free; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for file in self._files.values():
            file.close()
        os.close(self._lock)


class RunDirectory(CallFolder):
    """One run's files; see :class:`CallFolder`."""

    def __init__(self, path: Path, *, wait_s: float = 0.0) -> None:
        super().__init__(path, wait_s=wait_s, others=("answers", "retrievals", "conversations"))
        self._run = ""
        self._finished: tuple[tuple[str, int, int], frozenset[str]] | None = None
        self.settled = {row.question_id: row for row in rows.settled(self._file("settled"))}

    def begin(self, record: RunRecord) -> RunRecord:
        """Start the run or take it up again.

        Returns:
            The record to keep updating: the stored one, when the directory holds a run of the same identity.

        Raises:
            RunDirectoryError: the directory holds a run with other settings, or of another schema.
        """
        self._run = identity_digest(record.identity)
        stored = self.stored_record()
        if stored is not None:
            self._check_same(stored, record)
            record.started, record.prompts = stored["started"], dict(stored["prompts"])
            record.resumed = stored["resumed"] + 1
            record.earlier_code = _earlier_code(stored, record)
            record.cut_texts = stored.get("cut_texts") or 0
            record.adaptations = list(stored.get("adaptations") or [])
            record.memory_code = stored.get("memory_code")  # of its beginning, known or not
            record.row_checksums = stored.get("row_checksums", "each")
        self.save(record)
        return record

    def stored_record(self) -> dict[str, Any] | None:
        """Return ``run.json`` as stored, or ``None``."""
        return find_record(self.path)

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
        """Write ``run.json``, and sign the run when it is complete."""
        if record.status == "complete":
            finish_run(self.path, asdict(record))
        else:
            write_json(self.path / "run.json", asdict(record))
            reopen(self.path)

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
            sign_files(self.path, ["run.json"])
        return changed

    def write_references(self, records: Iterable[ReferenceRecord]) -> bool:
        """Copy the run's gold into the directory, so that scoring needs no data set; returns whether it was lacking."""
        return self._write_gold("references", records)

    def write_updates(self, records: Sequence[UpdatesRecord]) -> bool:
        """Copy what the data set says is overruled; no file where it says nothing. Returns whether it was lacking."""
        return bool(records) and self._write_gold("updates", records)

    def _write_gold(self, name: str, records: Iterable[ReferenceRecord | UpdatesRecord]) -> bool:
        path, wanted = self._file(name), list(map(asdict, records))
        if first_link(path) is None:  # as earlier versions wrote it: scores name its checksum
            content = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in wanted)
        else:
            content = row_lines(path, wanted)
        if path.is_file() and path.read_bytes() == content:
            return False
        write_atomic(path, content)
        sign_files(self.path, [path.name])
        return True

    def open_embeddings(self) -> None:
        """Open the ledger of embeddings, for a run whose embedder is paid by the token; others have none."""
        if "embeddings" not in self._files:
            self._files["embeddings"] = JsonLines(self.path / EMBEDDINGS)

    def add_embedding(self, record: EmbeddingRecord) -> None:
        """Append to the ledger of embeddings, which must be open."""
        self._files["embeddings"].append(_row(record))

    def add_conversation(self, record: ConversationRecord) -> None:
        """Append one ingested conversation."""
        self._files["conversations"].append(_row(record))

    def add_retrieval(self, record: RetrievalRecord) -> None:
        """Append what one question retrieved."""
        besides = None if record.also_shown is None else [_row(hit) for hit in record.also_shown]
        self._files["retrievals"].append({
            **_row(record), "hits": [_row(hit) for hit in record.hits], "also_shown": besides,
        })  # fmt: skip

    def add_answer(self, record: AnswerRecord) -> None:
        """Append one answer. Its retrieval must have been added before, so that no answer lacks one."""
        row = _row(record)
        if not record.reason:
            del row["reason"]
        self._files["answers"].append(row)

    def settle(self, record: SettledRecord) -> None:
        """Close a question without an answer."""
        if "settled" not in self._files:
            self._files["settled"] = JsonLines(self._file("settled"))
        self._files["settled"].append(_row(record))
        self.settled[record.question_id] = record

    def reopen(self, questions: Collection[str]) -> None:
        """Drop what is stored of questions that are to be asked again; their calls stay in the ledger."""
        kept = [_row(row) for name, row in self.settled.items() if name not in questions]
        if len(kept) < len(self.settled):
            write_rows(self._file("settled"), kept)
        self.settled = {name: row for name, row in self.settled.items() if name not in questions}
        answered = {row.question_id for row in rows.answers(self._file("answers"))}
        if answered & set(questions):
            self._keep("answers", answered - set(questions))

    def finished_questions(self, mode: str) -> frozenset[str]:
        """Return the ids of the questions that need not be asked again.

        In a run that answers, a question is finished when its retrieval and its answer are stored, or when it is
        settled; one without the other is dropped. Files are read again where rows were added.

        Raises:
            RunDirectoryError: a row is damaged, or a question occurs twice.
        """
        if self._finished is None or self._finished[0] != self._rows_of(mode):
            found = frozenset(self._read_finished(mode))
            self._finished = self._rows_of(mode), found
        return self._finished[1] | self.settled.keys()

    def answers_without_calls(self) -> list[str]:
        """Return the questions whose answer has tokens but no call in the ledger, whose rows a crash lost."""
        booked = {item for _, phase, _, _, item, _ in self._known_calls if phase in ("retrieve", "answer")}
        answers = rows.answers(self._file("answers"))
        return sorted(one.question_id for one in answers if one.prompt_tokens and one.question_id not in booked)

    def _rows_of(self, mode: str) -> tuple[str, int, int]:
        return mode, self._files["retrievals"].size, self._files["answers"].size

    def _read_finished(self, mode: str) -> set[str]:
        retrieved = self._question_ids("retrievals.jsonl", rows.read_rows(self._file("retrievals"), RetrievalRecord))
        if mode == "retrieval_only":
            return retrieved
        answered = self._question_ids("answers.jsonl", rows.answers(self._file("answers")))
        done = retrieved & answered
        if retrieved - self.settled.keys() != done:
            self._keep("retrievals", done | self.settled.keys())
        if answered != done:
            self._keep("answers", done)
        return done

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

    def _keep(self, name: str, done: set[str]) -> None:
        """Drop the rows of all other questions from a file."""
        file = self._files[name]
        kept = [row for row in read_json_lines(file.path) if row["question_id"] in done]
        write_rows(file.path, kept)
        self._files[name] = JsonLines(file.path)
        file.close()  # last: where the disk is full, the directory still closes it

    def ingested_conversations(self) -> set[str]:
        """Return the ids of the conversations whose record is stored.

        Raises:
            RunDirectoryError: a row is damaged.
        """
        return {row.conversation_id for row in rows.read_rows(self._file("conversations"), ConversationRecord)}

    def snapshots(self, conversation_ids: Iterable[str]) -> Snapshots:
        """Return the store of the memory snapshots of the run's conversations."""
        return Snapshots(self.path / "snapshots", self._run, conversation_ids)


def _row(record: Any) -> dict[str, Any]:
    """Return the fields of a slotted dataclass without the deep copy of ``asdict`` (0.1 ms for each question)."""
    return {name: getattr(record, name) for name in record.__slots__}


def _earlier_code(stored: Mapping[str, Any], record: RunRecord) -> list[dict[str, Json]]:
    """Return the commits that a resumed run was made with before the present one."""
    found: list[dict[str, Json]] = list(stored.get("earlier_code", ()))
    before, now = (
        {"commit": commit, "dirty": dirty}
        for commit, dirty in ((stored.get("commit"), stored.get("dirty")), (record.commit, record.dirty))
    )
    return found if before == now or before in found else [*found, before]


def _call_identity(call: CallRecord) -> tuple[Any, ...]:
    """Return the key by which a resumed run recognises a repeated call.

    The item belongs to it: two questions may ask for the same thing, and which of them asks first depends on timing.
    """
    return (call.conversation_id, call.phase, call.role, call.key, call.item, call.attempt)
