"""Every system on one line: hand-worked scores, shares and costs of made-up runs, and what a run does not say."""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from eval.loaders.question_types import ADVERSARIAL
from eval.results.own.memory_quality import quality_groups
from eval.results.own.systems import SystemLine, UnitCosts, system_lines, systems_page
from eval.results.stored_run import StoredRun
from eval.runs.records import ScoreRow

PREPARE = {"calls": 20, "prompt_tokens": 4000, "completion_tokens": 600}
WRITE = {"calls": 10, "prompt_tokens": 900, "completion_tokens": 500}
ANSWER = {"calls": 4, "prompt_tokens": 400, "completion_tokens": 12}
SHARES = {"stored_recall": 1.0, "recall@5": 0.5, "recall@10": 1.0, "shown_recall": 0.5}


def made(name: str = "rag", answerable: float = 0.4, mode: str = "answers", ledger: bool = True) -> StoredRun:
    """A run of two questions, of which one has no answer, over ten turns."""
    config = {"memory": {"name": name}, "dataset": {"name": "locomo"}, "backbone": {"name": "b"}}
    record = {"run_id": name, "config": config, "mode": mode, "seed": 0, "data": {}}
    phases: Mapping[str, Any] = {"prepare": PREPARE, "write": WRITE, "answer": ANSWER}
    calls = {"by_phase": {phase: {"total": total, "by_role": {}} for phase, total in phases.items()}}
    counts = {"memory": {"sizes": {"turns": {"sum": 10}}}, "counts": {"rows": 2}}
    rows = (
        ScoreRow("q0", "c", 4, {"f1_set": answerable, **SHARES}),
        ScoreRow("q1", "c", 5, {"f1_set": 1.0, "trapped": 1.0}, kind=ADVERSARIAL),
    )
    return StoredRun(record, {}, {**counts, **({"calls": calls} if ledger else {})}, rows)


def lines(*runs: StoredRun) -> list[SystemLine]:
    [group] = quality_groups(runs)
    return system_lines(group)


def test_a_line_by_hand() -> None:
    [found] = lines(made())
    assert (found.score, found.answerable) == (pytest.approx(70), pytest.approx(40))
    assert (found.stored, found.at_5, found.at_10, found.shown) == (100, 50, 100, 50)
    # 20 + 10 calls and 4,600 + 1,400 tokens for ten turns; 4 and 412 for two questions.
    assert found.write == UnitCosts(3.0, 600.0)
    assert found.read == UnitCosts(2.0, 206.0)


def test_the_best_stands_first_behind_references_and_names_decide_ties() -> None:
    found = lines(made("b"), made("c", 0.9), made("no_memory", 0.1), made("a"))
    assert [line.label for line in found] == ["no_memory", "c", "a", "b"]


def test_a_memory_that_asks_nothing_has_no_costs_and_one_without_ledger_unknown_ones() -> None:
    run = made()
    asked = {"by_phase": {"answer": run.summary["calls"]["by_phase"]["answer"]}}
    [found] = lines(replace(run, summary={**run.summary, "calls": asked}))
    assert found.write == UnitCosts(0.0, 0.0)
    assert lines(made(ledger=False))[0].write == UnitCosts()


def test_a_run_that_only_retrieves_is_placed_by_its_recall_and_has_no_score() -> None:
    low = made("low", mode="retrieval_only", ledger=False)
    rows = tuple(replace(row, metrics={**row.metrics, "recall@10": 0.2}) for row in low.rows)
    found = lines(replace(low, rows=rows), made("high", mode="retrieval_only", ledger=False))
    assert [(line.label, line.score, line.answerable) for line in found] == [("high", None, None), ("low", None, None)]
    assert found[0].write == found[0].read == UnitCosts()


@pytest.mark.parametrize("suffix", ["md", "csv", "tex"])
def test_every_format_has_every_run(suffix: str) -> None:
    page = systems_page(quality_groups([made(), made("clag", ledger=False)])).files[f"all_systems.{suffix}"]
    assert "rag" in page and "clag" in page
    if suffix == "csv":
        clag, rag = csv.DictReader(io.StringIO(page))
        assert (clag["system"], clag["calls_per_turn"], rag["tokens_per_turn"]) == ("clag", "", "600.0000")
        assert systems_page([]).files["all_systems.csv"].startswith("run,system,")
