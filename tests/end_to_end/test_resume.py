"""``kill -9`` at any point, then the same command: the answers are those of a run that was never killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.runs.files import read_json_lines
from tests.support.paid_once import Watch
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that answers by a function of the prompt after 10 ms."""
    with stub_server(delay=0.01) as address:
        yield address


def command(url: str, folder: Path, *extra: str) -> list[str]:
    return [
        sys.executable, "-m", "eval.run", "dataset=locomo_sample", "memory=clag_quickstart", "embedder=hashing",
        *attached(url), f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}",
        "score=false", "progress=lines", "schedule.checkpoint_every=10", *extra,
    ]  # fmt: skip


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def kill_after(arguments: list[str], file: Path, rows: int) -> bool:
    """Start the command and kill it hard once ``file`` has that many rows; false when it finished before."""
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while lines(file) < rows and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    alive = process.poll() is None
    if alive:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


def told_to_end(arguments: list[str], run: Path, rows: int, number: signal.Signals) -> tuple[int, str]:
    """Start the command and send it a signal once it has booked so many calls; returns its exit status and errors."""
    process = subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )  # fmt: skip
    while lines(run / "calls.jsonl") < rows and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, errors


def finish(arguments: list[str]) -> None:
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


def outcome(folder: Path) -> dict[str, Any]:
    """What must not depend on the kill: answers, contexts, hits, and which calls were booked."""
    run = folder / "run"
    answers = list(read_json_lines(run / "answers.jsonl"))
    retrievals = {row["question_id"]: row for row in read_json_lines(run / "retrievals.jsonl")}
    assert len({row["question_id"] for row in answers}) == len(answers)
    return {
        "answers": {row["question_id"]: (row["prediction"], row["raw"], row["options"]) for row in answers},
        "contexts": {name: row["context"] for name, row in retrievals.items()},
        "hits": {
            name: [(hit["memory_id"], hit["turn_ids"]) for hit in row["hits"]] for name, row in retrievals.items()
        },
    }


def booked(folder: Path) -> set[tuple[Any, ...]]:
    rows = list(read_json_lines(folder / "run" / "calls.jsonl"))
    calls = [(row["conversation_id"], row["phase"], row["role"], row["key"], row["attempt"]) for row in rows]
    assert len(set(calls)) == len(calls)
    return set(calls)


@pytest.fixture(scope="module")
def uninterrupted(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    finish(command(url, folder))
    return folder


@pytest.mark.parametrize(
    ("file", "rows", "extra"),
    [
        ("calls.jsonl", 1, ()),
        ("calls.jsonl", 60, ()),
        ("calls.jsonl", 150, ("use_cache=false",)),
        ("answers.jsonl", 1, ()),
        ("answers.jsonl", 9, ("use_cache=false",)),
    ],
)
def test_killed_run_ends_with_the_same_answers(
    url: str, uninterrupted: Path, tmp_path: Path, file: str, rows: int, extra: tuple[str, ...]
) -> None:
    arguments = command(url, tmp_path, *extra)
    assert kill_after(arguments, tmp_path / "run" / file, rows), "finished before it could be killed"
    finish(arguments)
    assert outcome(tmp_path) == outcome(uninterrupted)
    assert booked(tmp_path) == booked(uninterrupted)


def test_killed_three_times_it_asks_no_recorded_reply_again(uninterrupted: Path, tmp_path: Path) -> None:
    watch = Watch(tmp_path / "log.jsonl", tmp_path / "cache")
    with stub_server(delay=0.01, extra=("--log", str(watch.log))) as url:
        arguments = command(url, tmp_path)
        for rows in (20, 90, 160):
            kill_after(arguments, tmp_path / "run" / "calls.jsonl", rows)
            watch.after_kill()
        finish(arguments)
    assert outcome(tmp_path) == outcome(uninterrupted)
    paid = watch.paid(json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["model"])
    assert paid.doubled == 0 and paid.calls == len(booked(tmp_path))


def test_ctrl_c_says_so_and_resumes(url: str, uninterrupted: Path, tmp_path: Path) -> None:
    arguments = command(url, tmp_path)
    status, errors = told_to_end(arguments, tmp_path / "run", 30, signal.SIGINT)
    assert status == 130
    assert "the same command resumes" in errors and "Traceback" not in errors
    record = (tmp_path / "run" / "run.json").read_text()
    assert '"status": "interrupted"' in record and '"problems": []' in record
    finish(arguments)
    assert outcome(tmp_path) == outcome(uninterrupted)


@pytest.mark.real_model
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_with_an_embedded_model_ends_when_told_while_it_waits_for_replies(
    tmp_path: Path, number: signal.Signals
) -> None:
    arguments = [
        sys.executable, "-m", "eval.run", "dataset=locomo_sample", "memory=rag_quickstart", "embedder=hashing",
        "backbone=smollm2_135m", "use_cache=false", f"run_dir={tmp_path / 'run'}", "score=false", "progress=lines",
    ]  # fmt: skip
    status, errors = told_to_end(arguments, tmp_path / "run", 2, number)
    assert "the same command resumes" in errors and status > 0


def test_resume_with_a_changed_setting_is_refused(url: str, uninterrupted: Path) -> None:
    arguments = command(url, uninterrupted, "seed=7")
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "seed: 0 -> 7" in done.stderr and "Traceback" not in done.stderr


def test_workers_may_change_on_resume(url: str, uninterrupted: Path, tmp_path: Path) -> None:
    kill_after(command(url, tmp_path), tmp_path / "run" / "calls.jsonl", 40)
    finish(
        command(url, tmp_path, "schedule.prepare_ahead=1", "schedule.questions_in_flight=2", "backbone.max_in_flight=3")
    )
    assert outcome(tmp_path) == outcome(uninterrupted)
