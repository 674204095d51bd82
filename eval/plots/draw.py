"""Drawing a sheet: readable without colour, labelled with units, the same bytes for the same numbers."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eval.plots.figures import GREY, MARKERS, PALETTE, STYLE, Point, marked, write_figure
from eval.plots.sheet import Curve, Panel, Sheet
from eval.scoring.inference import ONE_CONVERSATION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT, _WIDTH = 3.9, 4.6
_HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
_EMPTY = "nothing printed or measured"


def draw_sheet(sheet: Sheet, folder: Path) -> list[Path]:
    """Draw one figure.

    Args:
        sheet: what to draw.
        folder: of the files.

    Returns:
        The files written, ``<name>.svg`` and ``<name>.png``.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(STYLE):
        widths = sheet.widths or (_WIDTH,) * len(sheet.panels)
        figure, grid = plt.subplots(
            1,
            len(sheet.panels),
            figsize=(sum(widths), _HEIGHT),
            width_ratios=widths,
            layout="constrained",
            squeeze=False,
        )
        for axes, panel in zip(grid[0], sheet.panels, strict=True):
            _draw_panel(axes, panel)
        _legend(figure, grid[0], sum(widths))
        if remark := full_remark(sheet):
            text = "\n".join(fill(line, round(15 * sum(widths))) for line in remark.split("\n"))
            figure.supxlabel(text, fontsize=7.5, color=GREY, x=0.01, ha="left")
        paths = write_figure(figure, folder / sheet.name)
        plt.close(figure)
    return paths


def full_remark(sheet: Sheet) -> str:
    """What stands under a figure: its remark, and what the mark of one conversation means where a curve has it."""
    points = (point for panel in sheet.panels for curve in panel.curves for point in curve.values.values())
    return f"{sheet.remark}\n{ONE_CONVERSATION}." if any(point.by_question for point in points) else sheet.remark


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if not any(curve.values for curve in panel.curves):
        axes.text(0.5, 0.5, _EMPTY, transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    {"bars": _bars, "lines": _lines, "points": _points}[panel.kind](axes, panel)
    for level in panel.levels:
        axes.axhline(level.value, color=_colour(level.colour), linestyle="--", linewidth=1.1, label=level.label)
    if panel.limits is not None:
        axes.set_xlim(*panel.limits)
    axes.set_ylim(bottom=0)


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _bars(axes: "Axes", panel: Panel) -> None:
    width = 0.8 / len(panel.curves)
    for number, curve in enumerate(panel.curves):
        offset = (number - (len(panel.curves) - 1) / 2) * width
        found = [(i + offset, curve.values[place]) for i, place in enumerate(panel.places) if place in curve.values]
        style: dict[str, Any] = {
            "width": 0.92 * width,
            "label": marked(curve.label, curve.values.values()),
            "edgecolor": _colour(curve.colour),
            "facecolor": _colour(curve.colour) if curve.origin == "printed" else "white",
            "hatch": _HATCHES[curve.colour % len(_HATCHES)] if curve.origin == "measured" else "",
            "linewidth": 0.8,
        }
        axes.bar([x for x, _ in found], [point.value for _, point in found], **style)
        _whiskers(axes, [x for x, _ in found], [point for _, point in found])
    axes.set_xticks(range(len(panel.places)), [place.replace(" ", "\n", 1) for place in panel.places], fontsize=8)
    axes.grid(visible=False, axis="x")


def _whiskers(axes: "Axes", x: Sequence[float], points: Sequence[Point]) -> None:
    known = [(place, point) for place, point in zip(x, points, strict=True) if point.high > point.low]
    if known:
        axes.errorbar(
            [place for place, _ in known],
            [point.value for _, point in known],
            yerr=_errors([point for _, point in known]),
            linestyle="none",
            ecolor=GREY,
            elinewidth=1.0,
            capsize=2,
        )


def _errors(points: Sequence[Point]) -> list[list[float]]:
    return [
        [max(0.0, point.value - point.low) for point in points],
        [max(0.0, point.high - point.value) for point in points],
    ]


def _lines(axes: "Axes", panel: Panel) -> None:
    for curve in panel.curves:
        found = sorted(((float(x), point) for x, point in curve.values.items()), key=lambda item: item[0])
        _errorbar(axes, curve, [x for x, _ in found], [point for _, point in found], "-")


def _points(axes: "Axes", panel: Panel) -> None:
    step = min(0.12, 0.7 / len(panel.curves))
    for number, curve in enumerate(panel.curves):
        if panel.places:
            beside = (number - (len(panel.curves) - 1) / 2) * step
            found = [(i + beside, curve.values[place]) for i, place in enumerate(panel.places) if place in curve.values]
        else:
            found = sorted(((float(x), point) for x, point in curve.values.items()), key=lambda item: item[0])
        line = "-" if curve.origin == "computed" else "none"
        _errorbar(axes, curve, [x for x, _ in found], [point for _, point in found], line)
    if panel.places:
        axes.set_xticks(range(len(panel.places)), panel.places, rotation=30, ha="right", fontsize=8)
        axes.set_xlim(-0.5, len(panel.places) - 0.5)
    else:
        axes.margins(x=0.15)


def _errorbar(axes: "Axes", curve: Curve, x: Sequence[float], points: Sequence[Point], line: str) -> None:
    colour = _colour(curve.colour)
    style: dict[str, Any] = {
        "color": colour,
        "marker": "" if curve.origin == "computed" else MARKERS[curve.colour % len(MARKERS)],
        "markersize": 5.5,
        "markerfacecolor": "white" if curve.origin == "measured" else colour,
        "markeredgecolor": colour,
        "linestyle": line,
        "linewidth": 1.2,
        "label": marked(curve.label, curve.values.values()),
    }
    values = [point.value for point in points]
    if any(point.high > point.low for point in points):
        axes.errorbar(x, values, yerr=_errors(points), elinewidth=1.0, capsize=2, **style)
    else:
        axes.plot(x, values, **style)


def _legend(figure: "Figure", grid: Sequence["Axes"], width: float) -> None:
    """One legend above all panels, every label once."""
    entries: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        columns = max(1, min(len(entries), round(width / 2.2)))
        figure.legend(
            entries.values(), entries.keys(), loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5
        )
