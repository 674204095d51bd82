"""The comparison of many systems: a row for each, a panel for each group of questions, so that names can be read."""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from eval.results.drawing.style import (
    GREY,
    PALETTE,
    Point,
    Series,
    Wording,
    bar_lengths,
    label_of,
    load_pyplot,
    log_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Characters of a name in one line.
_NAME = 36
#: Inches of a panel, of a line of a name, and of what is above and below the rows.
_PANEL, _LINE, _AROUND = 1.75, 0.15, 1.5


def draw_rows(series: Sequence[Series], groups: Sequence[str], labels: Wording) -> "Figure":
    """Draw the value over all questions, those by group, and the cost, one row per system in the order given.

    Args:
        series: one per system.
        groups: names of the panels.
        labels: texts.
    """
    plt = load_pyplot()
    names = [wrap(label_of(one), _NAME) or [""] for one in series]
    lines = max(map(len, names)) + 0.6
    costs = [one.cost for one in series if one.cost is not None]
    panels = [(f"{labels.metric} (%)", [one.overall for one in series])]
    panels += [(group, [one.groups.get(group) for one in series]) for group in groups]
    if costs:
        panels.append((labels.cost, [_cost(one) for one in series]))
    figure: Figure
    figure, grid = plt.subplots(
        1,
        len(panels),
        figsize=(_NAME * 0.075 + _PANEL * len(panels), _AROUND + _LINE * lines * len(series)),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axes, (title, points) in zip(grid[0], panels, strict=True):
        _draw_panel(axes, title, points)
    first, last = grid[0][0], grid[0][-1]
    first.set_yticks(range(len(series)), ["\n".join(name) for name in names])
    first.set_ylim(len(series) - 0.5, -0.5)
    if costs and min(costs) > 0 and max(costs) / min(costs) > 8:
        last.set_xlim(left=min(costs) / 2, right=max(costs) * 2)
        log_axis(last, between=False)
    return figure


def _cost(series: Series) -> Point | None:
    return None if series.cost is None else Point(series.cost, series.cost, series.cost)


def _draw_panel(axes: "Axes", title: str, points: Sequence[Point | None]) -> None:
    found = [(place, point) for place, point in enumerate(points) if point is not None]
    axes.errorbar(
        [point.value for _, point in found],
        [place for place, _ in found],
        xerr=bar_lengths([point for _, point in found]),
        color=PALETTE[0],
        marker="o",
        markersize=4.5,
        linestyle="none",
        elinewidth=1.1,
        capsize=2,
    )
    axes.set_xlim(left=0)
    in_one_line = title.replace("-\n", "-").replace("\n", " ")
    axes.set_title("\n".join(wrap(in_one_line, 22)), loc="left", fontsize=9, color=GREY)
    axes.tick_params(axis="y", length=0)
