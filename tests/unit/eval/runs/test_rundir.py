"""The run directory: one writer, the same settings, no call booked twice."""

import errno
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.running.completeness import check_resumed
from eval.runs.files import read_json_lines
from eval.runs.identity import differences, identity_hash
from eval.runs.load import load_retrievals, load_updates
from eval.runs.provenance import commit
from eval.runs.records import AnswerRecord, HitRecord, RetrievalRecord, UpdatesRecord
from eval.runs.run_json import RunRecord
from eval.runs.rundir import RunDirectory
from memsys.errors import RunDirectoryError
from memsys.llm.ledger import CallRecord


def record(**identity: Any) -> RunRecord:
    return RunRecord(
        run_id="x", experiment="e", seed=0, mode="answers", config={}, identity=identity, data={}, model={},
        commit=None, dirty=None, packages={}, hardware={}, started="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


def call(key: str, attempt: int = 0) -> CallRecord:
    return CallRecord(
        conversation_id="c", phase="write", role="evolve", key=key, item=key, attempt=attempt, prompt_tokens=1,
        completion_tokens=1, seconds=0.1, queue_seconds=0.0, finish_reason="stop", cache_hit=False, malformed=False,
        repaired=False, transport_retries=0, request_hash="h", endpoint="e",
    )  # fmt: skip


def retrieval(question_id: str) -> RetrievalRecord:
    return RetrievalRecord(question_id, "c", 1, [], "", 0, None, {})


def answer(question_id: str) -> AnswerRecord:
    return AnswerRecord(question_id, "c", 1, "q", "a", "a", False, [], 0.1, 0.1, False, 1, 1)


def test_second_process_is_refused_with_the_owner(tmp_path: Path) -> None:
    first = RunDirectory(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match=r"in use by process \d+"):
        RunDirectory(tmp_path / "run")
    first.close()
    RunDirectory(tmp_path / "run").close()


def test_a_run_that_other_code_goes_on_with_names_both(tmp_path: Path) -> None:
    """It named the last alone, as if all answers were of that."""
    codes = [("a", False), ("a", False), ("b", True), ("a", False), ("c", False)]
    for commit_id, dirty in codes:
        directory = RunDirectory(tmp_path)
        begun = directory.begin(replace(record(), commit=commit_id, dirty=dirty))
        directory.close()
    assert begun.commit == "c"
    assert begun.earlier_code == [{"commit": "a", "dirty": False}, {"commit": "b", "dirty": True}]


def test_code_that_git_does_not_know_yet_differs_from_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory of one's own in a new file was run as the commit, without changes."""
    monkeypatch.setattr("eval.runs.provenance.ROOT", tmp_path)
    (tmp_path / "memsys").mkdir()
    (tmp_path / "memsys" / "a.py").write_text("")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "memsys" / "a.pyc").write_text("")
    assert commit()["dirty"] is False
    (tmp_path / "memsys" / "mine.py").write_text("")
    assert commit()["dirty"] is True


def test_what_is_overruled_is_written_where_the_data_set_says_it(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert not directory.write_updates([]) and not (tmp_path / "updates.jsonl").exists()
    assert load_updates(tmp_path) == {}
    given = [UpdatesRecord("c", (("1", "2", "5"), ("3", "4"))), UpdatesRecord("d", ())]
    assert [directory.write_updates(given) for _ in range(2)] == [True, False]
    assert load_updates(tmp_path) == {"c": {"1": "5", "2": "5", "3": "4"}, "d": {}}
    directory.close()


def full(descriptor: int, data: bytes = b"") -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_cannot_be_opened_leaves_the_directory_unlocked(tmp_path: Path) -> None:
    """The next attempt of the same process was told that the process itself had the directory open."""
    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(RunDirectoryError, match=r"cannot write .*calls\.jsonl"):
        RunDirectory(tmp_path)
    (tmp_path / "calls.jsonl").rmdir()
    RunDirectory(tmp_path).close()


def test_a_full_disk_at_the_lock_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback, and the directory stayed locked."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(RunDirectoryError, match=r"cannot write .*\.lock: the disk is full"):
            RunDirectory(tmp_path)
    RunDirectory(tmp_path).close()


def test_deviations_are_no_part_of_what_names_a_run(tmp_path: Path) -> None:
    """A sentence that was reworded since must not keep a run from being taken up again."""
    directory = RunDirectory(tmp_path / "run")
    first = directory.begin(replace(record(k=1), departures=[{"id": "x", "what": "We do this; they do that."}]))
    again = directory.begin(replace(record(k=1), departures=[{"id": "x", "what": "We do this, and they do that."}]))
    assert (first.identity, again.resumed) == (again.identity, 1)
    stored = directory.stored_record()
    assert stored is not None
    assert stored["departures"] == again.departures
    directory.close()


def test_resume_with_other_settings_names_them(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.begin(record(memory={"k": 10}, seed=0))
    with pytest.raises(RunDirectoryError, match=r"memory\.k: 10 -> 20"):
        directory.begin(record(memory={"k": 20}, seed=0))
    again = directory.begin(record(memory={"k": 10}, seed=0))
    assert again.resumed == 1
    directory.close()


def test_repeated_calls_are_booked_once(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.add_call(call("t1"))
    directory.close()
    directory = RunDirectory(tmp_path)
    directory.add_call(call("t1"))
    directory.add_call(call("t1", attempt=1))
    directory.close()
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2


def test_a_call_whose_row_cannot_be_written_is_not_booked(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with pytest.raises(RunDirectoryError, match="cannot be written as JSON"):
        directory.add_call(replace(call("t1"), finish_reason="\ud800"))
    assert directory.booked_calls == 0
    directory.add_call(call("t1"))
    assert directory.booked_calls == len(list(read_json_lines(tmp_path / "calls.jsonl"))) == 1
    directory.close()


def test_calls_that_were_paid_again_are_kept_for_the_budget(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    for one in (call("t1"), call("t1"), replace(call("t1"), cache_hit=True), replace(call("q1"), phase="warm_up")):
        directory.add_call(one)
    directory.close()
    assert directory.booked_calls == len(list(read_json_lines(tmp_path / "calls.jsonl"))) == 1
    repeated = list(read_json_lines(tmp_path / "repeated_calls.jsonl"))
    assert [(row["key"], row["phase"]) for row in repeated] == [("t1", "write"), ("q1", "warm_up")]


def test_a_retrieval_is_read_as_it_was_written(tmp_path: Path) -> None:
    hit, linked = HitRecord("m1", "the oven", 0.5, ["D1:1"]), HitRecord("m2", "the boat", 0.0, ["D1:2"])
    made = [
        replace(retrieval(name), hits=[hit], also_shown=besides) for name, besides in (("q1", [linked]), ("q2", None))
    ]
    directory = RunDirectory(tmp_path)
    for one in made:
        directory.add_retrieval(one)
    directory.close()
    assert list(load_retrievals(tmp_path).values()) == made


def test_a_retrieval_whose_answer_was_lost_is_dropped(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    for name in ("q1", "q2"):
        directory.add_retrieval(retrieval(name))
    directory.add_answer(answer("q1"))
    directory.close()
    directory = RunDirectory(tmp_path)
    assert directory.finished_questions("answers") == {"q1"}
    directory.add_retrieval(retrieval("q2"))
    directory.add_answer(answer("q2"))
    directory.close()
    kept = (tmp_path / "retrievals.jsonl").read_text()
    assert kept.count('"q2"') == 1 and kept.count('"crc32"') == 2, "the row that was kept has its checksum again"


def test_a_run_of_an_older_version_goes_on_with_rows_that_have_checksums(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.add_retrieval(retrieval("q1"))
    directory.add_answer(answer("q1"))
    directory.close()
    for name in ("retrievals", "answers"):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in read_json_lines(file)))
    directory = RunDirectory(tmp_path)
    directory.add_retrieval(retrieval("q2"))
    directory.add_answer(answer("q2"))
    assert directory.finished_questions("answers") == {"q1", "q2"}
    directory.close()
    assert (tmp_path / "answers.jsonl").read_text().count('"crc32"') == 1


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("answers", r"delete this line and those behind it and start the run's command again"),
        ("calls", r"restore the file, or delete its"),
    ],
)
def test_what_to_do_about_a_changed_row_depends_on_the_file(tmp_path: Path, name: str, advice: str) -> None:
    """A call's line cannot be had again: without it costs would be too low."""
    directory = RunDirectory(tmp_path)
    directory.add_retrieval(retrieval("q1"))
    directory.add_answer(answer("q1"))
    directory.add_call(call("t1"))
    directory.close()
    file = tmp_path / f"{name}.jsonl"
    file.write_text(file.read_text().replace('"conversation_id":"c"', '"conversation_id":"b"'))
    with pytest.raises(RunDirectoryError, match=rf"{name}\.jsonl:1 was modified after it was written .*{advice}"):
        opened = RunDirectory(tmp_path)
        try:
            opened.finished_questions("answers")
        finally:
            opened.close()


def test_a_full_disk_while_a_row_is_dropped_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory closed a file that was closed already, whose error took the place of the message."""
    directory = RunDirectory(tmp_path)
    directory.add_retrieval(retrieval("q1"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunDirectoryError, match="the disk is full"):
            directory.finished_questions("answers")
    directory.close()
    again = RunDirectory(tmp_path)
    assert again.finished_questions("answers") == set() and again.finished_questions("retrieval_only") == set()
    again.close()


def test_finished_questions_are_read_once_and_again_where_rows_were_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, read = RunDirectory(tmp_path), []
    monkeypatch.setattr(directory, "_read_finished", lambda mode: read.append(mode) or {f"q{len(read)}"})
    assert directory.finished_questions("answers") == directory.finished_questions("answers") == {"q1"}
    assert directory.finished_questions("retrieval_only") == {"q2"}
    directory.add_retrieval(retrieval("q3"))
    assert directory.finished_questions("retrieval_only") == {"q3"}
    directory.add_answer(answer("q3"))
    assert directory.finished_questions("retrieval_only") == {"q4"}
    directory.close()


def test_retrieval_only_counts_retrievals(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.add_retrieval(retrieval("q1"))
    assert directory.finished_questions("retrieval_only") == {"q1"}
    directory.close()


def test_differences_name_nested_keys() -> None:
    old = {"a": {"b": 1, "c": [1]}, "d": None}
    assert differences(old, old) == []
    assert differences(old, {"a": {"b": 2, "c": [1]}, "e": 1}) == ["a.b: 1 -> 2", "e: null -> 1"]


def test_identity_hash_ignores_order_of_keys() -> None:
    assert identity_hash({"a": 1, "b": 2}) == identity_hash({"b": 2, "a": 1}) != identity_hash({"a": 1, "b": 3})


def test_snapshot_names_are_safe(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert directory.snapshots(["../a/b"]).path("../a/b").parent == tmp_path / "snapshots"
    directory.close()


def test_answers_whose_calls_a_crash_lost_are_named(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.begin(record())
    for name in ("q1", "q2"):
        directory.add_answer(answer(name))
    directory.add_answer(replace(answer("q3"), prompt_tokens=0))  # the memory's own
    directory.add_call(replace(call("q1"), phase="answer"))
    directory.add_call(call("q2"))  # a turn of that name: no call of the question
    assert directory.answers_without_calls() == ["q2"]
    with pytest.raises(RunDirectoryError, match=r"calls\.jsonl lacks the calls of 1 stored answers \(the first: q2\)"):
        check_resumed(directory)
    directory.add_call(replace(call("q2"), phase="retrieve"))
    check_resumed(directory)
    directory.close()
