"""A plan as people read it."""

from collections.abc import Sequence

from eval.commands.terminal import console, say
from eval.commands.terminal_tables import Column, show_folded
from eval.sweep.costing import CellCost, CostTotals, SweepPlan


def show_plan(plan: SweepPlan) -> None:
    """Print cells, then backbones, then what the figures leave out."""
    paid = [cost.to_pay for cost in plan.cells]
    method = sum((cost.method for cost in plan.cells), CostTotals())
    paid.append(sum(paid, CostTotals()))
    columns = [
        Column("stands", [*(cost.standing for cost in plan.cells), ""], "left"),
        Column("calls", [*map(_calls, plan.cells), _whole(method.calls)]),
        Column("to pay", [_whole(cost.calls) for cost in paid]),
        Column("prompt tokens", [_short(cost.prompt) for cost in paid]),
        Column("reply tokens", [_short(cost.reply) for cost in paid]),
    ]
    cells = [*(cost.cell.label for cost in plan.cells), f"{len(plan.cells)} cells"]
    show_folded("", [Column("cell", cells, "left")], columns)
    _show_groups(plan)
    _show_gaps(plan)


def _show_groups(plan: SweepPlan) -> None:
    known = [group.hours for group in plan.groups if group.hours is not None]
    columns = [
        Column("cells", [*(str(group.cells) for group in plan.groups), ""]),
        Column("calls to pay", [*(_whole(group.to_pay.calls) for group in plan.groups), ""]),
        Column("GPUs", [*(str(group.gpus or "-") for group in plan.groups), ""]),
        Column("GPU hours, roughly", [*(_hours(g.hours) for g in plan.groups), _hours(sum(known) if known else None)]),
        Column("hours, one server", [*(_hours(group.wall_hours) for group in plan.groups), ""]),
        Column("bound by", [*(group.bound or "hosted or embedded" for group in plan.groups), ""], "left"),
    ]
    backbones = [*(group.backbone for group in plan.groups), "all"]
    show_folded(f"on {plan.gpu.upper()}", [Column("backbone", backbones, "left")], columns)


def _show_gaps(plan: SweepPlan) -> None:
    for line in problems(plan.cells):
        say(line)
    unknown = sorted({cost.cell.valid_plan().memory.name for cost in plan.cells if not cost.known})
    if unknown:
        names = ", ".join(unknown)
        console().print(f"only the answers of {names} are counted: their configs have no expected_calls")
    say(
        "calls: as tables count them; to pay: without cells that are done and calls that an earlier cell pays. "
        "Tokens are estimates: `memsys sweep check` holds them against real runs. Hours are what these tokens "
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


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


def _hours(hours: float | None) -> str:
    return "-" if hours is None else f"{hours:.2f}" if hours < 10 else f"{hours:.0f}"
