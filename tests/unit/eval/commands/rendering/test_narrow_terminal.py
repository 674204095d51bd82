"""Tables and lists in windows of 60 and 80 columns: no line is longer, no figure is cut or broken."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from eval.commands.terminal import console
from eval.config.run_help import help_text
from eval.sweep.checking import CheckedRuns, RoleCheck, show_checked
from eval.sweep.costing import CellCost, CostTotals, GroupCost, SweepPlan
from eval.sweep.plan_report import show_plan
from eval.sweep.report import show_status
from eval.sweep.status import CellStatus

LABEL = "clag_locomo, clag_global_retrieval, deepseek_r1_15b, seed 0"
CELL: Any = SimpleNamespace(label=LABEL, plan=None)


@pytest.fixture(params=[60, 80])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setenv("COLUMNS", str(request.param))
    console.cache_clear()
    yield request.param
    console.cache_clear()


def table_of(shown: str, width: int) -> str:
    """What was printed before the first sentence; checks that nothing is wider than the window or cut."""
    assert "\u2026" not in shown
    assert all(len(line.rstrip()) <= width for line in shown.splitlines() if not line.startswith("calls: as tables"))
    return shown


def test_a_sweeps_status(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    ticket: Any = SimpleNamespace(job="1234567_12", host="node-with-a-long-name-0123", devices="0,1")
    done = CellStatus(CELL, "done", "", None, "", (1986, 1986), ticket)
    waiting = CellStatus(CELL, "waiting", "job 7654321", None, "", None, None)
    show_status([done, waiting])
    shown = table_of(capsys.readouterr().out, width)
    for figure in ("1986/1986", "1234567_12", "7654321", "1 of 2 cells done"):
        assert figure in shown


def test_a_sweeps_plan(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    costs = CostTotals(1_234_567, 9.876e9, 54_321)
    cell = CellCost(CELL, "waiting", costs, costs, costs, True, "", None)
    group = GroupCost("deepseek_r1_15b", 12, costs, 2, 123.4, 61.7, "")
    show_plan(SweepPlan([cell, cell], [group], "a100"))
    shown = table_of(capsys.readouterr().out, width)
    for figure in ("1,234,567", "2,469,134", "9.9 G", "54.3 k", "123", "62", "hosted or embedded"):
        assert figure in shown


def test_a_plan_beside_ledgers(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    row = RoleCheck("clag_small-qwen25_coder_05b-s0-0123456789ab", "retrieve", "selector", 1234.0, 1200, 2.5e6, 2.0e6)
    rows = [row, RoleCheck("rag", "answer", "default", None, 55, 0.0, 0.0)]
    show_checked(CheckedRuns(rows, ["clag_small-with-prompts-that-are-not-here"]))
    shown = table_of(capsys.readouterr().out, width)
    for figure in ("1,234", "1,200", "2,500,000", "2,000,000", "1.25", "1,255"):
        assert figure in shown


def test_the_help_of_a_group(width: int) -> None:
    for group in ("experiment", "sweep"):
        text = table_of(help_text(["--help", group]), width)
        assert "xMemory, Table" in text and "LoCoMo" in text
