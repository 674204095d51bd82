"""Stored results as a data frame."""

from pathlib import Path

import pytest

import memsys
from eval.export import export_run
from eval.runs.exports import exported_runs, read_export
from eval.runs.folders import SUMMARIES
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
