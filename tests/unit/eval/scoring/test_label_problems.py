"""Doubtful gold: scored like everything else, with the means without it beside, from one run."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE, marks
from eval.results.compare.rows import system_rows
from eval.results.frame import read_run
from eval.results.stored_run import StoredRun
from eval.runs.records import AnswerRecord, HitRecord, ReferenceRecord, RetrievalRecord
from eval.score import main
from eval.scoring.config import ScoringConfig
from eval.scoring.protocols import load_protocol
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from tests.support.fake_run import FakeRun

CONFIG = ScoringConfig(metrics=("f1_set",))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (None, set()),
        ("citation_repaired", set()),
        ("citation", {DOUBTFUL_EVIDENCE}),
        ("hallucination", {DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE}),
        ("low_support", {DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE}),
    ],
)
def test_marks(kind: str | None, expected: set[str]) -> None:
    extra = {} if kind is None else {"label_problem": kind}
    assert marks(extra) == dict.fromkeys(expected, 1.0)


def _write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Four questions: right and found; wrong gold; wrong evidence ids; right again but not found."""
    kinds = [None, "temporal_error", "citation", None]
    predictions = ["blue car", "nothing", "blue car", "blue"]
    found = [["D1:1"], ["D9:9"], ["D9:9"], ["D9:9"]]
    plain = ReferenceRecord("", "c1", 4, ["blue car"], None, ["D1:1"], [], ["The car is blue."], {})
    references = [
        replace(plain, question_id=f"q{n}", extra={"label_problem": kind} if kind else {})
        for n, kind in enumerate(kinds)
    ]
    answers = [
        AnswerRecord(f"q{n}", "c1", 4, "?", text, text, False, [], 0.1, 0.1, False, 1, 1)
        for n, text in enumerate(predictions)
    ]
    retrievals = [
        RetrievalRecord(f"q{n}", "c1", 4, [HitRecord("m", "text", 1.0, ids)], "x", 1, 1, {})
        for n, ids in enumerate(found)
    ]
    for name, rows in (("references", references), ("answers", answers), ("retrievals", retrievals)):
        _write(tmp_path / f"{name}.jsonl", rows)
    for name in ("calls", "conversations"):
        (tmp_path / f"{name}.jsonl").write_text("")
    return tmp_path


def test_both_means_come_from_one_run(run_dir: Path) -> None:
    score_run(run_dir, CONFIG)
    summary = summarise(run_dir)
    audited = summary["audited"]
    assert (audited["answers_left_out"], audited["evidence_left_out"]) == (1, 2)
    third = 2 / 3  # F1 of "blue" against "blue car"
    assert summary["protocols"]["clag"]["overall"]["F1"]["mean"] == pytest.approx((1 + 0 + 1 + third) / 4)
    assert audited["protocols"]["clag"]["F1"] == {"mean": round((2 + third) / 3, 6), "scored": 3, "unscored": 0}
    assert summary["evidence"]["all"]["recall@10"]["mean"] == 0.25
    assert audited["evidence"]["all"]["recall@10"] == {"mean": 0.5, "scored": 2, "unscored": 0}


def test_without_doubts_there_is_no_second_mean(run_dir: Path) -> None:
    rows = [json.loads(line) for line in (run_dir / "references.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "extra": {}}) + "\n" for row in rows]
    (run_dir / "references.jsonl").write_text("".join(lines))
    assert all(DOUBTFUL_ANSWER not in row.metrics for row in score_run(run_dir, CONFIG))
    assert summarise(run_dir)["audited"] is None


def test_the_command_line_shows_both(
    run_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # a narrower table is folded
    assert main([str(run_dir), "--metrics", "f1_set"]) == 0
    shown = capsys.readouterr().out
    assert "audited: without doubtful gold answers" in " ".join(shown.split())
    values = " ".join(shown.split())
    assert "66.67 4 (0)" in values and "88.89 3" in values
    assert "audited, all" in shown


def test_the_question_as_answer_is_the_floor(run_dir: Path) -> None:
    rows = [json.loads(line) for line in (run_dir / "answers.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "question": "Is the car blue?"}) + "\n" for row in rows]
    (run_dir / "answers.jsonl").write_text("".join(lines))
    score_run(run_dir, CONFIG)
    assert summarise(run_dir)["echo"]["f1_set"] == pytest.approx(2 * 0.5 * 1 / 1.5, abs=1e-6)


def test_a_comparison_has_a_column_for_it(tmp_path: Path) -> None:
    def values(number: int, metric: str) -> float | None:
        doubtful = float(number == 0)
        return {"f1_set": 0.0 if number == 0 else 1.0, "recall@10": 1.0 - doubtful,
                DOUBTFUL_ANSWER: doubtful, DOUBTFUL_EVIDENCE: doubtful}.get(metric)  # fmt: skip

    run = read_run(FakeRun(values=values, extra_metrics=(DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE)).write(tmp_path))
    assert isinstance(run, StoredRun)
    estimates = system_rows([run], load_protocol("clag"))[0].estimates
    assert (estimates["F1"].value, estimates["F1 audited"].value) == (95.0, 100.0)
    assert (estimates["R@10"].value, estimates["R@10 audited"].value) == (95.0, 100.0)
    plain = read_run(FakeRun(seed=1).write(tmp_path))
    assert isinstance(plain, StoredRun)
    assert "F1 audited" not in system_rows([plain], load_protocol("clag"))[0].estimates
