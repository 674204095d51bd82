"""The plot of a comparison: values by group, overall values and cost of several systems."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eval.results.drawing.labels import label_points
from eval.results.drawing.rows import draw_rows
from eval.results.drawing.style import (
    GREY,
    MARKERS,
    PALETTE,
    STYLE,
    Point,
    Series,
    Wording,
    bar_lengths,
    escape_texts,
    label_of,
    load_pyplot,
    log_axis,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Systems that are shown next to each other in a plot; of more, each has a row.
MOST_BESIDE = 8


def plot_comparison(series: Sequence[Series], labels: Wording, out: Path) -> Path:
    """Draw values by group, overall values and cost, and write ``<out>.svg``.

    Up to :data:`MOST_BESIDE` systems are shown next to each other in each group; of more, each has a row.

    Args:
        series: one per system.
        labels: texts.
        out: path without suffix.

    Returns:
        The file written.
    """
    plt = load_pyplot()
    with plt.rc_context(STYLE):
        groups = list(dict.fromkeys(group for one in series for group in one.groups))
        costly = any(one.overall is not None and one.cost is not None for one in series)
        side_by_side = len(series) <= MOST_BESIDE
        draw = partial(_draw_side_by_side, costly=costly) if side_by_side else draw_rows
        figure = draw(series, groups, labels)
        said = labels.remark if costly else f"{labels.remark} There is no cost recorded."
        remark = "\n".join(fill(line, round(13 * figure.get_figwidth())) for line in said.split("\n"))
        figure.supxlabel(remark, fontsize=7.5, color=GREY, x=0.01, ha="left")
        if costly and side_by_side:
            _label_costs(figure, figure.axes[1], series)
        path = write_figure(figure, out)
        plt.close(figure)
    return path


def _draw_side_by_side(series: Sequence[Series], groups: Sequence[str], labels: Wording, *, costly: bool) -> "Figure":
    """Draw a few systems side by side in every group, and their cost in a panel of its own."""
    plt = load_pyplot()
    width = max(4.2, 1.0 + 0.16 * len(groups) * (len(series) + 2))
    figure: Figure
    figure, grid = plt.subplots(
        1,
        1 + costly,
        figsize=(width + (4.4 if costly else 0.8), 3.8),
        width_ratios=[width, 3.6][: 1 + costly],
        layout="constrained",
        squeeze=False,
    )
    _draw_groups(grid[0][0], series, groups, labels)
    if costly:
        _draw_cost(grid[0][1], series, labels)
    _legend(figure, grid[0][0], len(series))
    return figure


def _draw_groups(axes: "Axes", series: Sequence[Series], groups: Sequence[str], labels: Wording) -> None:
    step = min(0.16, 0.8 / max(1, len(series)))
    for number, one in enumerate(series):
        offset = (number - (len(series) - 1) / 2) * step
        found = [(index + offset, one.groups[group]) for index, group in enumerate(groups) if group in one.groups]
        _errorbar(axes, [x for x, _ in found], [point for _, point in found], number, label_of(one))
    for boundary in range(1, len(groups)):
        axes.axvline(boundary - 0.5, color="#DDDDDD", linewidth=0.8)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, max(1, len(groups)) - 0.5)  # without groups, matplotlib warns of equal limits
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"{labels.metric} (%)")
    axes.set_title(f"{labels.metric} by question category", loc="left")


def _draw_cost(axes: "Axes", series: Sequence[Series], labels: Wording) -> None:
    axes.set_title(f"{labels.metric} against cost", loc="left")
    axes.set_xlabel(labels.cost)
    axes.set_ylabel(f"{labels.metric} over all counted questions (%)")
    costs = []
    for number, one in enumerate(series):
        if one.overall is not None and one.cost is not None:
            _errorbar(axes, [one.cost], [one.overall], number, label_of(one))
            costs.append(one.cost)
    axes.set_ylim(bottom=0)
    if min(costs) > 0 and max(costs) / min(costs) > 8:
        log_axis(axes)
        axes.margins(x=0.15)
    else:
        axes.set_xlim(0, 1.15 * max(*costs, 1.0))


def _label_costs(figure: "Figure", axes: "Axes", series: Sequence[Series]) -> None:
    """Name each point where it is."""
    escape_texts(figure)
    figure.draw_without_rendering()
    label_points(
        axes,
        [
            (one.label, one.cost, one.overall.value, PALETTE[number % len(PALETTE)])
            for number, one in enumerate(series)
            if one.overall is not None and one.cost is not None
        ],
    )


def _errorbar(axes: "Axes", x: Sequence[float], points: Sequence[Point], number: int, label: str) -> None:
    style: dict[str, Any] = {
        "color": PALETTE[number % len(PALETTE)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "linestyle": "none",
        "elinewidth": 1.1,
        "capsize": 2,
    }
    axes.errorbar(x, [point.value for point in points], yerr=bar_lengths(points), label=label, **style)


def _legend(figure: "Figure", axes: "Axes", count: int) -> None:
    handles, texts = axes.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=min(count, 4), frameon=False, fontsize=8.5)
