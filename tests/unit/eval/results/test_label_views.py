"""Views of disputed labels in tables and in scoring; the audit of category 5 is one of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from eval.audit.config import AuditConfig
from eval.audit.readings import all_readings
from eval.loaders.locomo import LOCOMO
from eval.loaders.locomo_category5 import read_category5
from eval.results.frame import read_runs
from eval.results.stored_run import StoredRun
from eval.results.tables.label_view import all_under_labels, under_labels, views
from eval.runs.records import ScoreRow
from eval.score import main as score
from eval.scoring import labels
from eval.tables import main as tables
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun

PUBLISHED = LOCOMO.files[0].sha256


def _run(*rows: ScoreRow, data: str = PUBLISHED) -> StoredRun:
    return StoredRun({"run_id": "r", "data": {"sha256": data}, "config": {}, "mode": "answers"}, {}, {}, rows)


def test_the_audit_of_category_5_is_a_view_of_the_published_file_alone() -> None:
    audit = read_category5()
    doubtful = next(name for name, one in audit.items() if one.verdict == "unsound")
    sound = next(name for name, one in audit.items() if one.verdict == "sound")
    rows = [ScoreRow(name, "c", 5, {"f1_set": 1.0}) for name in (doubtful, sound)]
    seen = under_labels(_run(*rows), "adversarial_masked")
    assert [row.question_id for row in seen.rows] == [sound]
    assert "language models" in views([seen])[0]
    other = _run(*rows, data="0" * 64)
    assert under_labels(other, "adversarial_masked") is other
    assert len(labels.doubtful_adversarial()) == 25  # 11 answerable, 14 ambiguous; docs and card say so


def test_retrievals_have_nothing_to_correct_and_old_summaries_are_named() -> None:
    marked = ScoreRow("q", "c", 1, {"recall@10": 1.0, "doubtful_answer": 1.0})
    retrieved = replace(_run(marked), record={**_run().record, "run_id": "retrieved"})
    answered = _run(replace(marked, metrics={**marked.metrics, "f1_set": 0.0}))
    found, reasons = all_under_labels([retrieved, answered], "corrected")
    assert found == [retrieved]
    assert len(reasons) == 1
    assert "r was scored without the corrected labels" in reasons[0]
    with pytest.raises(ConfigError, match="choose one of printed"):
        all_under_labels([], "other")  # type: ignore[arg-type]


def test_tables_under_another_view_are_no_verdict_on_the_printed_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeRun(backbone="qwen3_06b", data_sha256=PUBLISHED).write(tmp_path / "runs")
    (run,), _ = read_runs([tmp_path / "runs"])
    adversarial = [row.question_id for row in run.rows if row.category == 5]
    monkeypatch.setattr(labels, "doubtful_adversarial", lambda: frozenset(adversarial[:1]))
    out = tmp_path / "out"
    command = ["--paper", "clag", "--table", "1", "--runs", str(tmp_path / "runs"), "--out", str(out)]
    assert tables([*command, "--labels", "adversarial_masked"]) == 0
    text = (out / "clag_table01.md").read_text()
    assert "n=19, " in text
    assert "labels: without adversarial questions that language models read as answerable or ambiguous" in text
    assert tables(command) == 0
    assert "labels: " not in (out / "clag_table01.md").read_text()
    assert tables([*command, "--labels", "other"]) == 2


def test_scoring_shows_the_means_of_a_view_and_stores_those_of_the_printed_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = FakeRun(data_sha256=PUBLISHED).write(tmp_path)
    (run,), _ = read_runs([tmp_path])
    monkeypatch.setattr(
        labels, "doubtful_adversarial", lambda: frozenset(row.question_id for row in run.rows if row.category == 5)
    )
    assert score([str(path)]) == 0
    whole, stored = capsys.readouterr().out, (path / "summary.json").read_bytes()
    assert score([str(path), "--labels", "adversarial_masked"]) == 0
    shown = capsys.readouterr().out
    assert "16 of 20 questions (summary.json has the labels as printed)" in shown
    assert "16 (0)" in shown
    assert "20 (0)" in whole
    assert (path / "summary.json").read_bytes() == stored
    assert score([str(path), "--labels", "other"]) == 2


def test_the_audit_reads_category_5_under_its_view_where_it_counts() -> None:
    readings = all_readings(AuditConfig(["f1_set"], "", "", 1))
    found = {one.counting for one in readings if one.labels == "adversarial_masked"}
    assert found == {"fooled", "abstain"}


def test_a_corrected_row_keeps_no_verdict_on_the_printed_answer() -> None:
    scores = {"f1_set": 0.0, "f1_set@corrected": 1.0, "judge_strict_m": 0.0, "bert_f1": 0.7, "recall@10": 1.0}
    disputed = ScoreRow("q", "c", 1, {**scores, "doubtful_answer": 1.0})
    (seen,) = under_labels(_run(disputed), "corrected").rows
    assert seen.metrics["f1_set"] == 1.0 and seen.metrics["recall@10"] == 1.0
    assert seen.metrics["judge_strict_m"] is None and seen.metrics["bert_f1"] is None


def test_a_doubtful_citation_takes_the_scores_of_evidence_alone() -> None:
    rows = [
        ScoreRow("a", "c", 1, {"f1_set": 1.0, "recall@10": 0.0, "doubtful_evidence": 1.0}),
        ScoreRow("b", "c", 1, {"f1_set": 0.5, "recall@10": 1.0, "doubtful_answer": 1.0, "doubtful_evidence": 1.0}),
        ScoreRow("c", "c", 1, {"f1_set": 0.2, "recall@10": 0.5}),
    ]
    run = replace(_run(*rows), summary={"counts": {"rows": 3}})
    seen = under_labels(run, "masked")
    assert [(row.question_id, row.metrics["f1_set"], row.metrics["recall@10"]) for row in seen.rows] == [
        ("a", 1.0, None),
        ("c", 0.2, 0.5),
    ]
    assert seen.asked == 3 and len(seen.rows) == 2  # totals of the run's ledger are of three questions
