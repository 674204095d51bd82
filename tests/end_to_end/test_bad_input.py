"""What a user sees when something is wrong: one message that says what, where and what to do, and no traceback."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, *overrides: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "eval.run", f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}",
               "embedder=hashing", "score=false", *overrides]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def impatient(url: str) -> tuple[str, ...]:
    return (*attached(url), "backbone.transport_retries=1", "backbone.backoff_s=0.01", "backbone.timeout_s=2")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("memory=nope",), ["memory/nope", "--help memory"]),
        (("memory.nope=1",), ["nope", "memory"]),
        (("+memory.nope=1",), ["memory", "nope"]),
        (("mode=nope",), ["mode='nope'", "retrieval_only"]),
        (("timing=slow",), ["timing='slow'", "latency"]),
        (("reader.answer_format=xml",), ["answer_format", "json"]),
        (("dataset=locomo", "dataset.data_dir=no/such/folder"), ["locomo10.json", "memsys data"]),
        (("dataset.turn_style=nope",), ["nope", "plain"]),
        (("+experiment=nope",), ["experiment/nope", "--help experiment"]),
        (("mode=retrieval_only", "memory=clag"), ["clag", "backbone", "mode=answers"]),
    ],
)
def test_wrong_settings_are_named_with_the_choices(
    tmp_path: Path, overrides: tuple[str, ...], words: list[str]
) -> None:
    code, errors = run(tmp_path, *overrides)
    assert code == 2, errors
    assert "Traceback" not in errors
    for word in words:
        assert word in errors, errors


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], ["locomo10.json"]),
        (lambda text: text.replace('"question"', '"qestion"', 1), ["locomo10.json", "question"]),
        (lambda text: json.dumps({"not": "a list"}), ["locomo10.json", "array"]),
        (lambda text: "", ["locomo10.json"]),
    ],
)
def test_damaged_data_is_named(tmp_path: Path, damage: object, words: list[str]) -> None:
    text = (ROOT / "datasets" / "locomo" / "sample.json").read_text(encoding="utf-8")
    (tmp_path / "locomo10.json").write_text(damage(text), encoding="utf-8")  # type: ignore[operator]
    code, errors = run(tmp_path, "dataset=locomo", f"dataset.data_dir={tmp_path}", "mode=retrieval_only")
    assert code == 2 and "Traceback" not in errors
    for word in words:
        assert word in errors, errors


@pytest.mark.parametrize("failure", ["500", "garbage", "hang"])
def test_a_failing_server_leaves_an_incomplete_run_that_resumes(tmp_path: Path, failure: str) -> None:
    settings = ("memory=rag", "dataset.limit_questions=6")
    with stub_server(delay=0.0, extra=("--fail", failure)) as url:
        code, errors = run(tmp_path, *impatient(url), *settings)
    assert code == 3, errors
    assert "incomplete" in errors and "Traceback" not in errors
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "incomplete" and record["problems"]
    assert (tmp_path / "run" / "answers.jsonl").read_text() == ""
    with stub_server(delay=0.0) as url:
        code, errors = run(tmp_path, *impatient(url), *settings)
    assert code == 0, errors
    assert len((tmp_path / "run" / "answers.jsonl").read_text().splitlines()) == 6


def test_a_refusing_server_is_named(tmp_path: Path) -> None:
    code, errors = run(tmp_path, *impatient("http://127.0.0.1:9/v1"), "memory=rag", "dataset.limit_questions=2")
    assert code in (2, 3) and "127.0.0.1:9" in errors and "Traceback" not in errors


def test_a_server_that_dies_is_survived(tmp_path: Path) -> None:
    settings = ("memory=clag_quickstart", "dataset.limit_questions=4")
    with stub_server(delay=0.02) as url:
        command = [sys.executable, "-m", "eval.run", f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}",
                   "embedder=hashing", "score=false", *impatient(url), *settings]  # fmt: skip
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        calls = tmp_path / "run" / "calls.jsonl"
        while (not calls.is_file() or calls.read_bytes().count(b"\n") < 40) and process.poll() is None:
            time.sleep(0.01)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 3 and "Traceback" not in errors, errors
    with stub_server(delay=0.0) as url:
        code, errors = run(tmp_path, *impatient(url), *settings)
    assert code == 0, errors


def test_missing_model_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "nothing"))
    code, errors = run(tmp_path, "memory=rag", "backbone=smollm2_135m")
    assert code == 2 and "memsys models" in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("dataset=bioasq20_sample", "reader=amem"), ["reader amem", "category 6 (list)", "reader=clag", "[4]"]),
        (("+reader.roles.default.prompt=no/such.txt",), ["no/such.txt", "prompt file"]),
    ],
)
def test_a_reader_that_does_not_fit_is_refused_before_the_model_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], words: list[str]
) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "nothing"))
    code, errors = run(tmp_path, "memory=rag", "backbone=smollm2_135m", *overrides)
    assert code == 2 and "Traceback" not in errors and "memsys models" not in errors
    for word in words:
        assert word in errors, errors


def test_a_full_disk_is_said_and_resumed(tmp_path: Path) -> None:
    """A tiny file system of its own, where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        with stub_server(delay=0.0) as url:
            code, errors = run(disk, *impatient(url), "memory=rag", f"cache_dir={tmp_path / 'cache'}")
            assert code == 2 and "disk is full" in errors and "Traceback" not in errors, errors
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            code, errors = run(disk, *impatient(url), "memory=rag", f"cache_dir={tmp_path / 'cache'}")
        assert code == 0, errors
    finally:
        subprocess.run(["umount", str(disk)], check=False)
        shutil.rmtree(disk, ignore_errors=True)
