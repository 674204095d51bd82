"""A run whose model had random weights gives its milliseconds to tables, and nothing that was answered."""

import json
from pathlib import Path

import pytest

from eval.compare import main as compare_runs
from eval.export import export_run
from eval.results.frame import load_results
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import choose, group_runs
from eval.results.tables.comparability import other_terms
from eval.results.tables.spec import load_spec
from eval.runs.run_json import has_random_weights
from eval.runs.signing import sign_folder
from memsys.errors import RunDirectoryError
from tests.support.fake_run import FakeRun, stored

SPEC = load_spec("clag")


def random_run(root: Path, **settings: str) -> StoredRun:
    path = FakeRun(memory="clag", backbone="qwen3_06b", dataset="locomo_clag", **settings).write(root)  # type: ignore[arg-type]
    record = json.loads((path / "run.json").read_text())
    record["model"] = {"model": "Qwen3-0.6B", "engine": {"engine": "vllm", "random_weights": True}}
    (path / "run.json").write_text(json.dumps(record))
    sign_folder(path)
    return stored(path)


def test_tables_take_its_times_and_no_answer(tmp_path: Path) -> None:
    run = random_run(tmp_path, timing="latency")
    grouped, unused = group_runs([run], SPEC)
    ((_, rows),) = grouped.items()
    ((dataset, runs),) = rows.items()
    assert not unused
    assert choose(runs, dataset, "f1_set", SPEC) == "random weights answered"
    assert choose(runs, dataset, "e_recall", SPEC) == "random weights answered"
    timed = choose(runs, dataset, "retrieval_ms", SPEC)
    assert not isinstance(timed, str)
    assert "random weights" in other_terms(timed.run, dataset, SPEC)
    assert not run.summary


def test_frames_have_nothing_of_it(tmp_path: Path) -> None:
    frame = load_results(random_run(tmp_path).path)
    assert len(frame) == 20
    assert "f1_set" not in frame.columns


def test_it_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="random weights"):
        export_run(random_run(tmp_path).path, tmp_path / "summaries")


def test_comparisons_show_no_score_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = random_run(tmp_path / "runs").path
    assert compare_runs([str(path), "--out", str(tmp_path / "out")]) == 0
    assert "random weights" in capsys.readouterr().out


def test_a_second_model_counts() -> None:
    assert has_random_weights({"model": {"second": {"engine": {"declared": {"random_weights": True}}}}})
    assert not has_random_weights({"model": {"engine": {"engine": "vllm", "dtype": "bfloat16"}}})
    assert not has_random_weights({})
