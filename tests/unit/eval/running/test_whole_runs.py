"""A run is complete when its files say so: whatever was deleted is noticed at the next start, and made again."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.config import answer_prompts
from eval.running.composed import compose_plan
from eval.running.experiment import RunResult, run_experiment
from eval.runs.files import read_json_lines
from eval.runs.manifest import DERIVED
from eval.runs.records import AnswerRecord
from eval.runs.rundir import RunDirectory
from eval.sign import sign
from memsys.errors import RunDirectoryError
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

QUESTIONS = 6


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    """Answers at once by a function of the request."""
    with StubServer() as running:
        yield running


def start(server: StubServer, folder: Path, *overrides: str) -> RunResult:
    plan = compose_plan([
        "dataset=locomo_sample", f"dataset.limit_questions={QUESTIONS}", "memory=amem_small", "embedder=hashing",
        *attached(server.url), f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", "progress=lines",
        "scoring.metrics=[f1_set]", *overrides,
    ])  # fmt: skip
    return run_experiment(plan)


@pytest.fixture(scope="module")
def made(server: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete, scored run."""
    folder = tmp_path_factory.mktemp("made")
    assert start(server, folder).complete
    return folder


def content(folder: Path) -> dict[str, Any]:
    run = folder / "run"
    rows = {
        name: {row["question_id"]: row for row in read_json_lines(run / f"{name}.jsonl")}
        for name in ("answers", "retrievals", "references", "scores")
    }
    return {
        "answers": {name: row["prediction"] for name, row in rows["answers"].items()},
        "contexts": {name: row["context"] for name, row in rows["retrievals"].items()},
        "references": list(rows["references"].values()),
        "scores": {name: row["metrics"] for name, row in rows["scores"].items()},
        "conversations": [row["conversation_id"] for row in read_json_lines(run / "conversations.jsonl")],
        "snapshots": sorted(path.name for path in (run / "snapshots").iterdir()),
        "calls": sorted(str(row["request_hash"]) for row in read_json_lines(run / "calls.jsonl")),
        "status": json.loads((run / "run.json").read_text())["status"],
        "summary": (run / "summary.json").is_file(),
    }


@pytest.mark.parametrize(
    "lost",
    ["answers.jsonl", "retrievals.jsonl", "conversations.jsonl", "references.jsonl", "scores.jsonl", "scores_meta.json",
     "summary.json", "snapshots", "answers.jsonl retrievals.jsonl", "answers.jsonl conversations.jsonl snapshots"],
)  # fmt: skip
def test_a_deleted_file_comes_back(server: StubServer, made: Path, tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    for name in lost.split():
        path = folder / "run" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not set(lost.split()) <= set(DERIVED):
        with pytest.raises(
            RunDirectoryError, match=r"is missing or empty, manifest\.json names it.* run `memsys sign "
        ):
            start(server, folder)
        sign(folder / "run")
    assert start(server, folder).complete
    assert content(folder) == content(made)
    assert len(content(folder)["answers"]) == QUESTIONS


@pytest.mark.parametrize("name", ["answers.jsonl", "retrievals.jsonl"])
def test_a_deleted_row_is_asked_again_and_said(
    server: StubServer, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    path = folder / "run" / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunDirectoryError, match=rf"{name} was modified after it was written"):
        start(server, folder)
    sign(folder / "run")
    assert start(server, folder).complete
    capsys.readouterr()
    assert content(folder) == content(made)


def test_a_whole_run_is_not_run_again(server: StubServer, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = server.state.count
    assert start(server, made).complete
    assert "nothing to run" in capsys.readouterr().out
    assert server.state.count == before


def test_a_whole_run_is_not_that_of_another_prompt(server: StubServer, tmp_path: Path) -> None:
    """The settings name the file alone: with another text in it the answers of the former were shown as its own."""
    prompt = tmp_path / "mine.txt"
    prompt.write_text("From $context answer: $question")
    chosen = f"+reader.roles.default.prompt={prompt}"
    assert start(server, tmp_path, chosen).complete
    prompt.write_text("Answer from $context: $question")
    with pytest.raises(RunDirectoryError, match=r"mine.txt is not the prompt of role reader.default"):
        start(server, tmp_path, chosen)
    prompt.write_text("From $context answer: $question")
    assert start(server, tmp_path, chosen).complete


def test_a_whole_run_says_that_an_answer_prompt_has_changed(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts of a reader's folder are in no setting: the same command showed the answers to the former ones."""
    texts = tmp_path / "texts"
    shutil.copytree(answer_prompts.PROMPTS, texts)
    monkeypatch.setattr(answer_prompts, "PROMPTS", texts)
    monkeypatch.setattr(answer_prompts, "_shipped", answer_prompts._shipped.__wrapped__)
    assert start(server, tmp_path).complete
    assert start(server, tmp_path).complete
    assert "answer prompt" not in capsys.readouterr().out
    for text in texts.glob("*/default.txt"):
        text.write_text("Answer from $context: $question")
    assert start(server, tmp_path).complete
    assert "warning: the answer prompt of default is not the one" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("role", ["reader.roles.default", "memory.roles.analyse"])
def test_a_killed_run_does_not_go_on_with_another_prompt(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """The prompts were written when a run ended in order: after a kill, half of its answers were of either prompt."""
    prompt = tmp_path / "mine.txt"
    prompt.write_text("First wording")
    chosen = f"+{role}.prompt={prompt}"
    add, killed = RunDirectory.add_answer, tmp_path / "killed"

    def copy_once(directory: RunDirectory, record: AnswerRecord) -> None:
        add(directory, record)
        if not killed.exists():
            shutil.copytree(directory.path, killed / "run")  # what a kill leaves

    monkeypatch.setattr(RunDirectory, "add_answer", copy_once)
    assert start(server, tmp_path, chosen).complete
    prompt.write_text("Second wording")
    with pytest.raises(RunDirectoryError, match=r"mine.txt is not the prompt of role"):
        start(server, killed, chosen)
    prompt.write_text("First wording")
    assert start(server, killed, chosen).complete


def test_a_run_without_a_backend_is_complete_only_with_its_answers(
    server: StubServer, made: Path, tmp_path: Path
) -> None:
    """The server is gone: what is missing cannot be made, and the run does not say that it is complete."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    (folder / "run" / "answers.jsonl").unlink()
    sign(folder / "run")
    shutil.rmtree(folder / "cache")
    server.fail(*["400"] * 50)
    result = start(server, folder)
    server.state.failures.clear()
    assert not result.complete
    assert json.loads((folder / "run" / "run.json").read_text())["status"] == "incomplete"


def test_references_of_another_data_set_are_refused(server: StubServer, made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    path = folder / "run" / "references.jsonl"
    path.write_text(path.read_text().replace('"answers":["', '"answers":["altered '))
    with pytest.raises(RunDirectoryError, match=r"references\.jsonl was modified after it was written"):
        start(server, folder)
