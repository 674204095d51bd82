"""Nothing is silently wrong: what is asked for is done, or refused with what to do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.commands.places import RESULTS, check_file, check_folder, tracked_remark
from eval.loaders.locate import find_source
from eval.loaders.locomo import LOCOMO
from eval.results.compare import compare
from eval.results.compare.model import make_report
from eval.results.stored_run import StoredRun
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.running.plan import folder, run_path
from eval.running.recording import make_record
from eval.runs.folders import find_run_folders
from eval.runs.identity import listed
from eval.runs.load import load_scores
from eval.runs.records import ScoreRow
from eval.score import main as score
from eval.scoring import score_run as score_module
from eval.scoring.aggregate import aggregate
from eval.scoring.config import ScoringConfig
from eval.scoring.protocols import load_protocol, recorded_protocol
from eval.scoring.score_run import score_run
from memsys.errors import ConfigError, DataError, RunDirectoryError
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig
from tests.support.backbones import backbone_config
from tests.support.fake_run import FakeRun, stored

CLAG = load_protocol("clag")


def test_further_metrics_leave_the_others(tmp_path: Path) -> None:
    run = FakeRun(questions_each=3).write(tmp_path)
    score_run(run, ScoringConfig(metrics=("f1_set",)))
    score_run(run, ScoringConfig(metrics=("em_squad",)))
    for row in load_scores(run):
        assert {"f1_set", "em_squad"} <= row.metrics.keys()


@pytest.mark.usefixtures("unsigned")
def test_a_file_without_rows_changes_no_answers(tmp_path: Path) -> None:
    """Judging opens a run, which makes the files that it lacks; scoring it again then dropped all other metrics."""
    run = FakeRun(questions_each=3).write(tmp_path)
    (run / "retrievals.jsonl").unlink()
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "recorded": {"label": "elsewhere"}}))
    score_run(run, ScoringConfig(metrics=("f1_set",)))
    (run / "retrievals.jsonl").touch()
    score_run(run, ScoringConfig(metrics=("em_squad",)))
    for row in load_scores(run):
        assert {"f1_set", "em_squad"} <= row.metrics.keys()


@pytest.mark.usefixtures("unsigned")
def test_scores_of_other_answers_are_not_kept(tmp_path: Path) -> None:
    run = FakeRun(questions_each=3).write(tmp_path)
    score_run(run, ScoringConfig(metrics=("f1_set",)))
    lines = (run / "answers.jsonl").read_text().splitlines()
    changed = {**json.loads(lines[0]), "prediction": "something else"}
    (run / "answers.jsonl").write_text("\n".join([json.dumps(changed), *lines[1:]]) + "\n")
    score_run(run, ScoringConfig(metrics=("em_squad",)))
    assert all("f1_set" not in row.metrics for row in load_scores(run))


@pytest.mark.parametrize(("model", "kept"), [("one", True), ("other", False)])
def test_scores_of_another_model_are_not_kept_beside_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, kept: bool
) -> None:
    """The file names one model: it named the former one, beside F1 by the new and precision by the old."""

    def scores(answered: Any, metrics: Any, config: ScoringConfig) -> tuple[dict[str, Any], dict[str, Any]]:
        names = [metric.name for metric in metrics if metric.neural]
        found = {reference.question_id: dict.fromkeys(names, 0.5) for _, reference in answered}
        return found, {"bertscore": {"model": config.bertscore_model}} if names else {}

    monkeypatch.setattr(score_module, "neural_scores", scores)
    run = FakeRun(questions_each=3).write(tmp_path)
    score_run(run, ScoringConfig(metrics=("bert_f1", "bert_precision"), bertscore_model="one"))
    score_run(run, ScoringConfig(metrics=("bert_f1",), bertscore_model=model))
    meta = json.loads((run / "scores_meta.json").read_text())
    assert meta["config"]["bertscore_model"] == meta["models"]["bertscore"]["model"] == model
    assert all(("bert_precision" in row.metrics) is kept for row in load_scores(run))


def test_the_command_adds_to_its_preset_and_swallows_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = FakeRun(questions_each=3).write(tmp_path)
    assert score(["--preset", "default", "--metrics", "em_squad", str(run)]) == 0
    assert {"f1_set", "em_squad"} <= load_scores(run)[0].metrics.keys()
    shown = capsys.readouterr().out
    assert "metrics asked for" in shown
    assert "em_squad" in shown


def test_a_run_in_the_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had none, and its summary was written over the folder of all summaries."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    plan = compose_plan(["mode=retrieval_only", "memory=rag", "dataset=locomo_sample", "run_dir=."])
    record = make_record(plan, plan.dataset.load(), {"model": None}, run_path(plan, {}))
    assert record.run_id == "mine"


def rows_of(kinds: list[str]) -> list[ScoreRow]:
    return [ScoreRow(f"q{n}", "c", n, {"f1_set": 0.5}, kind) for n, kind in enumerate(kinds, start=40)]


def test_kinds_that_a_protocol_does_not_know_count_and_are_named() -> None:
    means = aggregate(rows_of(["multi_hop", "ordering", "ordering"]), CLAG)
    assert means.left_out == 0 and means.unlabelled == ["ordering"]
    assert [(part.label, part.questions) for part in means.categories][1:] == [("ordering", 1), ("ordering", 1)]
    assert means.overall["F1"].scored == 3
    assert means.as_json()["unlabelled_kinds"] == ["ordering"]


def test_adversarial_questions_that_are_left_out_are_not_unknown() -> None:
    assert aggregate(rows_of(["multi_hop", "adversarial"]), load_protocol("xmemory")).unlabelled == []


def test_a_run_is_compared_under_the_protocol_it_was_asked_for() -> None:
    same = recorded_protocol({"name": "clag", "categories": [1, 2, 3], "labels": {"1": "multi-hop"}})
    assert same == CLAG
    other = recorded_protocol({"name": "clag", "weighting": "category_mean"})
    assert (other.weighting, other.name) == ("category_mean", "clag with other weighting=category_mean")
    renamed = recorded_protocol({"name": "clag", "labels": {"multi_hop": "several hops"}})
    assert renamed.labels["multi_hop"] == "several hops"
    assert renamed.labels["temporal"] == CLAG.labels["temporal"]


ENGINE = LlamaCppEngineConfig(
    model_file="smollm2_135m_gguf", context_length=1024, parallel=1, batch_invariant=True, threads=None, port=0
)


def test_an_embedded_engine_serves_the_model_that_is_recorded() -> None:
    assert backbone_config(engine=ENGINE, model="SmolLM2-135M-Instruct", context_length=1024).context_length == 1024
    with pytest.raises(ConfigError, match=r"backbone.model='foo'.*smollm2_135m_gguf"):
        backbone_config(engine=ENGINE, model="foo", context_length=1024)


def test_a_window_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"multiples of 256 tokens; take 256$"):
        replace(ENGINE, context_length=100)
    with pytest.raises(ConfigError, match="take 256 or 512"):
        replace(ENGINE, context_length=300)
    with pytest.raises(ConfigError, match=r"context_length=512, but backbone.engine.context_length=1024"):
        backbone_config(engine=ENGINE, model="SmolLM2-135M-Instruct", context_length=512)


def test_folders_are_made_only_below_one_that_is_there(tmp_path: Path) -> None:
    assert check_file(tmp_path / "new" / "lens.md") == tmp_path / "new" / "lens.md"
    assert check_folder(tmp_path / "new") == tmp_path / "new"
    for check in (check_file, check_folder):
        with pytest.raises(RunDirectoryError, match="there is no folder"):
            check(tmp_path / "no" / "such" / "place")
    with pytest.raises(RunDirectoryError, match="is a folder"):
        check_file(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="is a file"):
        check_folder(tmp_path / "file")


def test_a_place_that_git_tracks_is_said() -> None:
    assert "results/summaries is tracked by git" in tracked_remark(RESULTS / "summaries")
    assert tracked_remark(RESULTS / "lens.md") == ""


def test_a_file_in_place_of_a_folder_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    with pytest.raises(RunDirectoryError, match="is a file; name a run directory"):
        list(find_run_folders([tmp_path / "README.md"]))


def test_two_seeds_are_one_row_with_a_spread_and_paired(tmp_path: Path) -> None:
    """RAG scores 0.2 and 0.4, A-Mem 0.5 and 0.7: means 30 and 60, a deviation of 14.1 each, 30 points between them."""

    def run(memory: str, seed: int, value: float) -> StoredRun:
        return stored(FakeRun(memory=memory, seed=seed, values=lambda number, metric: value).write(tmp_path))

    runs = [run("rag", 0, 0.2), run("rag", 1, 0.4), run("amem", 0, 0.5), run("amem", 1, 0.7)]
    report = make_report(runs, CLAG)
    assert [row.label for row in report.rows] == ["amem", "rag"]
    assert [row.repeats.seeds for row in report.rows] == [(0, 1), (0, 1)]
    assert [round(row.estimates["F1"].value, 6) for row in report.rows] == [60.0, 30.0]
    assert report.rows[0].estimates["F1"].spread == pytest.approx(100 * 0.1 * 2**0.5)
    pair = next(pair for pair in report.pairs if pair.column == "F1")
    assert (pair.system, pair.baseline) == ("amem", "rag")
    assert pair.result.difference == pytest.approx(30.0)
    uneven = make_report([*runs, run("amem", 2, 0.0)], CLAG)  # RAG has no seed 2: the test is over the two they share
    pair = next(pair for pair in uneven.pairs if pair.column == "F1")
    assert pair.result.difference == pytest.approx(30.0)


def test_a_file_as_the_folder_of_the_data_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "locomo10.json").write_text("[]")
    with pytest.raises(DataError, match=r"is a file; MEMSYS_DATA and dataset.data_dir name the folder"):
        find_source(LOCOMO, "locomo10.json", None, str(tmp_path / "locomo10.json"))


def test_a_text_where_a_list_is_wanted_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"scoring.metrics=f1_set must be a list, e.g. scoring.metrics=\[f1_set\]"):
        ScoringConfig(metrics="f1_set")


def test_a_folder_setting_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="must be the name of a folder"):
        folder("run_dir", [1])
    with pytest.raises(ConfigError, match="is a file"):
        folder("run_dir", str(tmp_path / "file"))


def test_differences_of_two_runs_are_listed_line_by_line() -> None:
    lines = listed([f"memory.setting_{number}: {'x' * 200}" for number in range(30)]).splitlines()
    assert len(lines) == 7
    assert all(len(line) < 110 for line in lines)
    assert lines[-1] == "  and 24 more"


def test_a_finished_run_is_shown_under_another_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [
        "mode=retrieval_only", "memory=rag_quickstart", "embedder=hashing", "dataset.limit_questions=4",
        f"run_dir={tmp_path / 'run'}", "progress=lines", "scoring.metrics=[f1_set]",
    ]  # fmt: skip
    run_experiment(compose_plan(settings))
    answers = (tmp_path / "run" / "retrievals.jsonl").read_bytes()
    run_experiment(compose_plan([*settings, "protocol=xmemory"]))
    shown = " ".join(capsys.readouterr().out.split())
    assert "complete, nothing to run" in shown
    assert 'protocol.name: "clag" -> "xmemory"' in shown
    assert (tmp_path / "run" / "retrievals.jsonl").read_bytes() == answers
    compare([tmp_path / "run"], tmp_path / "out")
    assert "protocol xmemory" in capsys.readouterr().out
