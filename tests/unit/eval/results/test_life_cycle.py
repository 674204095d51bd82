"""Costs over the life of a memory, by hand."""

import csv
import io
from pathlib import Path

import pytest

from eval.results.compare.rows import dollars_per_question
from eval.results.drawing.draw import draw_sheet
from eval.results.figures.life_cycle import life_cycle_sheets
from eval.results.figures.own import groups
from eval.results.own.life_cycle import LifeCost, break_even, life_costs, life_page
from eval.results.own.memory_quality import quality_groups
from eval.results.stored_run import StoredRun
from eval.runs.records import ScoreRow
from eval.scoring.protocols import load_protocol


def totals(tokens: int, calls: int, *, cached: int = 0) -> dict[str, object]:
    seconds, malformed = calls * 0.5, {"second_attempts": 0, "malformed": 0}
    numbers = {"calls": calls, "prompt_tokens": tokens, "completion_tokens": 0, "cache_hits": cached}
    return {"total": {**numbers, **malformed, "fresh_seconds": seconds}}


def run_of(name: str, write: int, read: int, *, cached: int = 0, backbone: str = "b") -> StoredRun:
    """Return a run that wrote 100 turns and asked 10 questions, two calls a turn and one a question."""
    rows = tuple(ScoreRow(f"q{n}", "c", 4, {"f1_set": 0.5, "recall@10": 1.0}, "single_hop") for n in range(10))
    phases = {"write": totals(100 * write, 200, cached=cached), "answer": totals(10 * read, 10)}
    summary = {
        "memory": {"sizes": {"turns": {"sum": 100.0}}},
        "calls": {"by_phase": phases, "total": phases["write"]["total"]},
        "counts": {"rows": 10},
        "cost": {"read_per_question": {"calls": 1, "prompt_tokens": read, "completion_tokens": 0}},
    }
    config = {"memory": {"name": name}, "dataset": {"name": "locomo"}, "backbone": {"name": backbone},
              "protocol": {"name": "clag"}}  # fmt: skip
    record = {"run_id": f"x/{name}", "config": config, "mode": "answers", "seed": 0, "data": {}}
    return StoredRun(record, {}, summary, rows)


def test_costs_of_a_turn_and_of_a_question() -> None:
    found = life_costs(run_of("amem", 1000, 600))
    assert found["tokens"] == LifeCost(1000.0, 600.0) and found["calls"] == LifeCost(2.0, 1.0)
    assert found["seconds"] == LifeCost(1.0, 0.5) and "dollars" not in found
    assert found["tokens"].of(400, 50) == 430_000
    assert "seconds" not in life_costs(run_of("amem", 1000, 600, cached=1))
    assert life_costs(run_of("amem", 1000, 600, backbone="gpt4o_mini"))["dollars"].write == pytest.approx(0.00015)
    batched = run_of("amem", 1000, 600, backbone="gpt4o_mini")
    phases = batched.summary["calls"]["by_phase"]
    phases["write"]["total"]["cached_tokens"] = 40_000  # of 100,000, at half the price
    phases["answer"]["total"]["batched"] = {"prompt_tokens": 3000, "completion_tokens": 0, "cached_tokens": 0}
    of_life = life_costs(batched)["dollars"]
    assert of_life.write == pytest.approx((60_000 * 0.15 + 40_000 * 0.075) / 1e6 / 100)
    assert of_life.read == pytest.approx((3000 * 0.15 + 3000 * 0.15 / 2) / 1e6 / 10)
    assert dollars_per_question(batched) == pytest.approx(of_life.read)
    assert life_costs(StoredRun({"run_id": "x", "config": {}}, {}, {}, ())) == {}


def test_break_even_by_hand() -> None:
    # Writing takes 1,000 tokens a turn more, a question 9,400 less: even after 0.106 questions a turn.
    assert break_even(LifeCost(1000, 600), LifeCost(0, 10_000)) == pytest.approx(1000 / 9400)
    assert break_even(LifeCost(0, 10_000), LifeCost(1000, 600)) == "never"
    assert break_even(LifeCost(0, 600), LifeCost(0, 10_000)) == break_even(LifeCost(1, 5), LifeCost(2, 5)) == "always"
    assert break_even(LifeCost(1, 5), LifeCost(1, 5)) == "never"


def test_the_page_has_costs_and_break_even() -> None:
    runs = [run_of("amem", 1000, 600), run_of("rag", 0, 500), run_of("full_context", 0, 10_000)]
    page, data, _ = life_page(quality_groups(runs)).files.values()
    row = next(line for line in page.splitlines() if line.startswith("| amem "))
    assert row == "| amem | 50.0 | 100.0 | 2.00 | 1.00 | 1,000 | 600 | 1.00 | 0.50 | never | 10.6 |"
    assert "even with full_context, questions per 100 turns" in page
    even = "break_even_questions_per_100_turns"
    found = {(row["system"], row["other"], row["unit"]): row[even] for row in csv.DictReader(io.StringIO(data))}
    assert found["amem", "full_context", "tokens"] == "10.6383" and found["rag", "amem", "tokens"] == "always"
    assert not any(unit == "dollars" for _, _, unit in found) and "dollars" not in page.partition("##")[2]
    assert life_page([]).files["life_cycle.csv"].count("\n") == 1


def test_a_backbone_with_a_price_gives_dollars() -> None:
    """By 0.15 dollars a million prompt tokens: 0.00015 a turn, 0.0015 a question of the whole conversation."""
    runs = [run_of(*one, backbone="gpt4o_mini") for one in (("amem", 1000, 600), ("full_context", 0, 10_000))]
    page, data, _ = life_page(quality_groups(runs)).files.values()
    row = next(line for line in page.splitlines() if line.startswith("| amem "))
    assert row == "| amem | 50.0 | 100.0 | 2.00 | 1.00 | 1,000 | 600 | 1.00 | 0.50 | 0.000150 | 0.000090 | 10.6 |"
    (dollars,) = [
        one for one in csv.DictReader(io.StringIO(data)) if (one["system"], one["unit"]) == ("amem", "dollars")
    ]
    assert dollars["break_even_questions_per_100_turns"] == "10.6383" and dollars["write"] == "0.000150000"


def test_a_figure_for_each_data_set() -> None:
    runs = [run_of("amem", 1000, 600), run_of("rag", 0, 500)]
    (sheet,) = life_cycle_sheets(groups(runs), load_protocol("clag"))
    assert sheet.name == "life_cycle_locomo"
    whole, f1, _ = sheet.panels
    by_label = {curve.label: curve.values for curve in whole.curves}
    assert by_label["amem"][100].value == (100 * 1000 + 100 * 600) / 1000
    assert [next(iter(curve.values)) for curve in f1.curves] == [1600.0, 500.0]
    assert whole.crossings == () and "tick" not in sheet.remark
    assert life_cycle_sheets(groups(runs[:1]), load_protocol("clag")) == []


def test_a_system_without_tokens_is_not_in_the_logarithmic_panel(tmp_path: Path) -> None:
    runs = [run_of("amem", 1000, 600), run_of("full_context", 0, 10_000), run_of("bm25_turn", 0, 0)]
    (sheet,) = life_cycle_sheets(groups(runs), load_protocol("clag"))
    assert [len(panel.curves) for panel in sheet.panels] == [2, 3, 3]
    assert "not in the first panel, 0 tokens: bm25_turn." in sheet.remark
    assert draw_sheet(sheet, tmp_path).is_file()


def test_the_figure_marks_from_where_on_a_system_takes_less_than_the_whole_conversation(tmp_path: Path) -> None:
    """Of 100 turns: 100,000 and 600 a question as much as 10,000 a question after 10.6 questions, 106,383 tokens."""
    runs = [run_of("amem", 1000, 600), run_of("full_context", 0, 10_000)]
    (sheet,) = life_cycle_sheets(groups(runs), load_protocol("clag"))
    (crossing,) = sheet.panels[0].crossings
    assert crossing == pytest.approx((100 * 1000 / 9400, 10 * 1000 / 94))
    assert "from a vertical tick on a system takes fewer than rag or full_context" in sheet.remark
    drawn = draw_sheet(sheet, tmp_path).read_text(encoding="utf-8")
    assert ">10,000<" in drawn and drawn.count(">amem") == 3  # at the end of its line too
