"""Stored results as a data frame."""

import json
import logging
from pathlib import Path

import pytest

import memsys
from eval.export import export_run
from eval.runs.exports import exported_runs, read_export
from eval.runs.folders import SUMMARIES
from eval.scoring.score_run import score_run
from tests.support.fake_run import FakeRun


def test_runs_and_exports_give_the_same_frame(tmp_path: Path) -> None:
    for memory in ("rag", "amem"):
        export_run(FakeRun(memory=memory).write(tmp_path / "runs"), tmp_path / "exports")
    first, second = memsys.load_results(tmp_path / "runs"), memsys.load_results(str(tmp_path / "exports"))
    assert set(first["system"]) == {"rag", "amem"} and len(first) == len(second)
    assert first.groupby("system")["f1_set"].mean().to_dict() == second.groupby("system")["f1_set"].mean().to_dict()


def test_means_of_the_committed_runs_are_those_of_their_summaries() -> None:
    scores = memsys.load_results(SUMMARIES / "locomo_retrieval")
    means = scores.groupby("run")["recall@10"].mean()
    for path in exported_runs(SUMMARIES / "locomo_retrieval"):
        run = read_export(path)
        assert means[run.record["run_id"]] == pytest.approx(
            run.summary["evidence"]["all"]["recall@10"]["mean"], abs=1e-6
        )


def test_an_experiment_is_named_as_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    export_run(FakeRun().write(tmp_path / "runs"), tmp_path / "exports")
    monkeypatch.setattr("eval.runs.folders.RUNS", tmp_path / "runs")
    monkeypatch.setattr("eval.runs.folders.SUMMARIES", tmp_path / "exports")
    found = memsys.load_results("fake")
    assert set(found["experiment"]) == {"fake"} and set(found["status"]) == {"complete"}
    assert not found.duplicated(["run", "question_id"]).any()
    with pytest.raises(memsys.MemsysError, match="name a run directory, a folder of them, or an experiment"):
        memsys.load_results("fakes")


@pytest.mark.usefixtures("unsigned")
def test_a_run_that_goes_on_has_the_scores_of_what_it_has_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was left out without a word."""
    path = FakeRun().write(tmp_path / "runs")
    whole = {row.question_id: row.metrics["f1_set"] for row in score_run(path)}
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "status": "running"}))
    answers = (path / "answers.jsonl").read_bytes().splitlines(keepends=True)
    (path / "answers.jsonl").write_bytes(b"".join(answers[:2]) + answers[2][:10])  # a row that is being written
    with caplog.at_level(logging.WARNING):
        assert memsys.load_results(path).empty and "not complete (running)" in caplog.text
    live = memsys.load_results(path, live=True)
    assert set(live["status"]) == {"running"} and len(live) == 2
    assert live.set_index("question_id")["f1_set"].to_dict() == {name: whole[name] for name in live["question_id"]}


def test_an_exported_run_is_opened_and_has_scores_alone(tmp_path: Path) -> None:
    exported = export_run(FakeRun().write(tmp_path / "runs"), tmp_path / "exports")
    run = memsys.load_run(exported)
    assert run.complete and len(run.scores()) == len(memsys.load_results(exported))
    with pytest.raises(memsys.MemsysError, match="an exported run, which has scores alone"):
        run.answers()
