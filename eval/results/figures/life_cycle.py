"""Figure of what memories cost over their life, one for each data set: total tokens by questions, score by tokens."""

from collections.abc import Sequence
from itertools import permutations
from typing import TypeAlias

from eval.results.compare.rows import SystemRow, system_rows
from eval.results.drawing.figure_spec import Curve, Origin, Panel, Place, Sheet, exact
from eval.results.drawing.style import Point
from eval.results.figures.own import PlotGroup, short_labels
from eval.results.own.life_cycle import AGAINST, LifeCost, break_even, life_costs
from eval.results.tables.costs import turns_written
from eval.scoring.protocols import Protocol

#: Questions asked of a conversation, at which the curves are drawn.
_ASKED = (1, 3, 10, 30, 100, 300, 1000, 3000)
#: Inches of the panels: names of some twenty systems need room.
_WIDTHS = (6.4, 7.4, 6.4)
#: A system's number, row and costs.
_Known: TypeAlias = tuple[int, SystemRow, LifeCost]


def life_cycle_sheets(groups: Sequence[PlotGroup], protocol: Protocol) -> list[Sheet]:
    """Return a figure for each data set, of its group with the most systems."""
    largest: dict[str, PlotGroup] = {}
    for group in (group for group in groups if not group.runs[0].of_sample):
        name = group.runs[0].dataset
        if name not in largest or len(group.runs) > len(largest[name].runs):
            largest[name] = group
    found = [_sheet(name, group, protocol) for name, group in sorted(largest.items())]
    return [sheet for sheet in found if sheet is not None]


def _sheet(name: str, group: PlotGroup, protocol: Protocol) -> Sheet | None:
    """Return the figure of a group; ``None`` where fewer than two systems have a ledger."""
    rows = short_labels(system_rows(group.runs, protocol))
    known = [(number, row, costs) for number, row in enumerate(rows) if (costs := life_costs(row.run).get("tokens"))]
    if len(known) < 2:
        return None
    sizes = [turns_written(row.run.summary) / max(len(row.run.conversations), 1) for _, row, _ in known]
    turns = sum(sizes) / len(sizes)
    crossings = _crossings(known, turns)
    drawn = [one for one in known if one[2].of(turns, 1) > 0]
    panels = (
        Panel(
            "writing once, asking often",
            f"questions asked of a conversation of {turns:,.0f} turns",
            "tokens in all, thousands",
            "lines",
            tuple(_curve(number, row, costs, turns) for number, row, costs in drawn),
            crossings=crossings,
            logarithmic=True,
        ),
        _against("F1", "F1 (%)", known, turns),
        _against("R@10", "R@10 (%)", known, turns),
    )
    tick = f"; from a vertical tick on a system takes fewer than {' or '.join(AGAINST)}" if crossings else ""
    if free := [row.label for _, row, costs in known if costs.of(turns, 1) == 0]:
        tick += f"; not in the first panel, 0 tokens: {', '.join(free)}"
    remark = (
        f"{group.title}; protocol {protocol.name}. Tokens of prompts and replies of writing and asking{tick}. F1 and "
        "R@10: against tokens for a question where 100 are asked of a conversation."
    )
    return Sheet(f"life_cycle_{name}", panels, remark, widths=_WIDTHS, columns=2, height=5.4)


def _origin(row: SystemRow) -> Origin:
    return "reference" if row.run.reference else "measured"


def _curve(number: int, row: SystemRow, costs: LifeCost, turns: float) -> Curve:
    values: dict[Place, Point] = {asked: exact(costs.of(turns, asked) / 1000) for asked in _ASKED}
    return Curve(row.label, values, number, _origin(row))


def _crossings(known: Sequence[_Known], turns: float) -> tuple[tuple[float, float], ...]:
    """Return where systems come to cost less than those that the table sets them against, within the panel."""
    found = set()
    for (_, row, costs), (_, other, others) in permutations(known, 2):
        even = break_even(costs, others)
        if other.run.memory in AGAINST and not row.run.reference and not isinstance(even, str):
            asked = even * turns
            if _ASKED[0] <= asked <= _ASKED[-1]:
                found.add((asked, costs.of(turns, asked) / 1000))
    return tuple(sorted(found))


def _against(column: str, label: str, known: Sequence[_Known], turns: float, asked: int = 100) -> Panel:
    curves = [
        Curve(row.label, {costs.of(turns, asked) / asked: row.estimates[column].point}, number, _origin(row))
        for number, row, costs in known
        if column in row.estimates
    ]
    return Panel(f"{column} against tokens", "tokens for a question, writing included", label, "points", tuple(curves))
