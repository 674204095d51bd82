"""A new metric is one function and one registration: every command that shows scores then shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.audit.sensitivity.config import LensConfig, load_config
from eval.audit.sensitivity.standings import compare_readings
from eval.floors import floor_metrics
from eval.metrics.metric import Metric
from eval.metrics.registry import METRICS, find_metric, register, select_metrics
from eval.report.config import load_config as load_page
from eval.report.scores import metric_list
from eval.results.compare.formats import comparison_files
from eval.results.compare.model import make_report
from eval.results.explain.questions import worst
from eval.results.frame import read_run
from eval.results.stored_run import StoredRun
from eval.results.tables.spec import load_spec
from eval.runs.records import ReferenceRecord
from eval.scoring.config import ScoringConfig
from eval.scoring.estimates import mean_value
from eval.scoring.protocols import load_protocol
from eval.scoring.score_run import score_run
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun


def extra_words(prediction: str, reference: str) -> float:
    return float(max(0, len(prediction.split()) - len(reference.split())))


NEW = Metric("extra_words", "here", extra_words, group="length", label="Extra", unit="words", higher_is_better=False)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(NEW)
    yield
    del METRICS["extra_words"]


def stored(root: Path, memory: str, value: float, seed: int = 0) -> StoredRun:
    fake = FakeRun(
        memory=memory,
        seed=seed,
        extra_metrics=("extra_words",),
        values=lambda _, name: value if "extra" in name else None,
    )
    run = read_run(fake.write(root))
    assert isinstance(run, StoredRun)
    return run


def test_it_is_scored_by_name_and_by_group(tmp_path: Path) -> None:
    rows = score_run(FakeRun().write(tmp_path), ScoringConfig(metrics=("extra_words",)))
    assert {row.metrics["extra_words"] for row in rows} == {0.0}  # two words each: "secret answer", "secret gold"
    assert NEW in select_metrics(["lexical"]) and find_metric("extra_words") is NEW


def test_comparisons_show_it_in_its_unit(tmp_path: Path) -> None:
    report = make_report([stored(tmp_path, "rag", 3.0), stored(tmp_path, "amem", 5.0)], load_protocol("clag"))
    assert {row.estimates["Extra"].value for row in report.rows} == {3.0, 5.0}
    column = next(column for column in report.columns if column.name == "Extra")
    assert column.meaning == "extra_words (here), words, lower is better"
    assert "Extra" in comparison_files(report)["compare.csv"]


def test_its_spread_over_seeds_is_in_its_unit_too(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag", value, seed) for seed, value in enumerate((3.0, 5.0))]
    (row,) = make_report(runs, load_protocol("clag")).rows
    assert row.estimates["Extra"].value == 4.0
    assert row.estimates["Extra"].spread == pytest.approx(2**0.5)


def test_the_lens_ranks_it_by_its_direction(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag", 3.0), stored(tmp_path, "amem", 5.0)]
    assert load_config().definitions["length"] == ("extra_words",)
    (found,) = compare_readings(runs, LensConfig({"length": ["extra_words"]}, ["extra_words"]), [load_protocol("clag")])
    line = next(line for lines in found.sections.values() for line in lines if line.reading.metric == "extra_words")
    assert [(standing.value, standing.rank, standing.unsure) for standing in line.standings] == [
        (3.0, 1, False),
        (5.0, 2, False),
    ]


def test_report_explain_floors_and_tables_know_it(tmp_path: Path) -> None:
    run, protocol = stored(tmp_path, "rag", 3.0), load_protocol("clag")
    entry = {"name": "extra_words", "heading": "Extra", "group": "answers", "source": "here", "unit": "words"}
    assert {**entry, "lower": True} in metric_list([run], load_page())
    assert NEW in floor_metrics()
    assert load_spec("clag").scale("extra_words") == 1.0
    assert mean_value(run.rows, "extra_words", None, protocol) == 3.0
    assert len(worst(run.rows, "extra_words", None, protocol, 4)) == 4


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ConfigError, match="'extra_words' is there already"):
        register(NEW)


def test_a_question_of_another_set_is_not_scored_by_a_rule_of_locomos(tmp_path: Path) -> None:
    """LoCoMo's official rule goes by its numbers; 5 of another data set is not an adversarial question."""
    from tests.support.fake_run import rewrite

    path = FakeRun(categories=(5,), questions_each=1, conversations=("c",)).write(tmp_path)
    rewrite(path, "references.jsonl", lambda _, row: row.update(kind="knowledge_update", adversarial_answer=None))
    (row,) = score_run(path, ScoringConfig(metrics=("locomo_official", "f1_set")))
    assert row.kind == "knowledge_update" and row.metrics["locomo_official"] is None
    assert row.metrics["f1_set"] == pytest.approx(0.5) and row.metrics["trapped"] is None
    assert ReferenceRecord("q", "c", 5, [], None, [], [], []).kind == "adversarial"
