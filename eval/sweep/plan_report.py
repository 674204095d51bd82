"""A plan as people read it."""

from collections.abc import Sequence

from eval.commands.counting import short
from eval.commands.rendering.table import Cell, Column, Table, columns, texts
from eval.commands.rendering.terminal import show
from eval.commands.terminal import console, say
from eval.sweep.costing import CellCost, CostTotals, SweepPlan


def show_plan(plan: SweepPlan) -> None:
    """Print cells, then backbones, then what the figures leave out."""
    method = sum((cost.method for cost in plan.cells), CostTotals())
    paid = sum((cost.to_pay for cost in plan.cells), CostTotals())
    rows = [[cost.cell.label, cost.standing, _calls(cost), *_to_pay(cost.to_pay)] for cost in plan.cells]
    rows.append([f"{len(plan.cells)} cells", "", _whole(method.calls), *_to_pay(paid)])
    figures = columns(("calls", "to pay", "prompt tokens", "reply tokens"), left=0)
    show(Table("", [*texts(("cell", "status")), *figures], rows))
    show(_groups(plan))
    _show_gaps(plan)


def _to_pay(cost: CostTotals) -> tuple[str, ...]:
    return _whole(cost.calls), short(cost.prompt), short(cost.reply)


def _groups(plan: SweepPlan) -> Table:
    headings = ("backbone", "cells", "calls to pay", "GPUs", "GPU hours, roughly", "hours, one server")
    rows: list[list[Cell]] = [
        [
            *(group.backbone, group.cells, _whole(group.to_pay.calls), str(group.gpus or "-")),
            *(_hours(group.hours), _hours(group.wall_hours), group.bound or "hosted or embedded"),
        ]
        for group in plan.groups
    ]
    known = [group.hours for group in plan.groups if group.hours is not None]
    rows.append(["all", "", "", "", _hours(sum(known) if known else None), "", ""])
    return Table(f"on {plan.gpu.upper()}", [*columns(headings), Column("bound by", "left")], rows)


def _show_gaps(plan: SweepPlan) -> None:
    for line in problems(plan.cells):
        say(line)
    unknown = sorted({cost.cell.valid_plan().memory.name for cost in plan.cells if not cost.known})
    if unknown:
        names = ", ".join(unknown)
        console().print(f"only the answers of {names} are counted: their configs have no expected_calls")
    say(
        "calls: as tables count them; to pay: without cells that are done and calls that an earlier cell pays. "
        "Tokens are estimates: `memsys sweep check` compares them with real runs. Hours are what these tokens "
        "take with full batches and no waiting, at usual shares of the GPU's peak; no run has confirmed them yet."
    )


def problems(cells: Sequence[CellCost]) -> list[str]:
    """Return why cells cannot be planned, each reason once with how many cells it keeps."""
    kept: dict[str, list[str]] = {}
    for cost in cells:
        if cost.problem:
            kept.setdefault(cost.problem, []).append(cost.cell.label)
    return [
        f"{labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''}: {problem}"
        for problem, labels in kept.items()
    ]


def _calls(cost: CellCost) -> str:
    return _whole(cost.method.calls) if cost.known else f"{_whole(cost.method.calls)} + ?"


def _whole(number: float) -> str:
    return f"{round(number):,}"


def _hours(hours: float | None) -> str:
    return "-" if hours is None else f"{hours:.2f}" if hours < 10 else f"{hours:.0f}"
