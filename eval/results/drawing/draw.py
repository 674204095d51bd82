"""Drawing a sheet: readable without colour, labelled with units, the same bytes for the same numbers."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eval.results.drawing.figure_spec import Curve, Panel, Sheet
from eval.results.drawing.labels import Label, label_ends, label_points
from eval.results.drawing.stages import draw_stages
from eval.results.drawing.style import (
    GREY,
    MARKERS,
    PALETTE,
    STYLE,
    Point,
    bar_lengths,
    escape_texts,
    load_pyplot,
    log_axis,
    marked,
    write_figure,
)
from eval.scoring.inference import ONE_CONVERSATION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 4.6
_HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
#: From this ratio of its ends on, a horizontal axis is logarithmic.
_WIDE = 8


def draw_sheet(sheet: Sheet, folder: Path) -> Path:
    """Draw one figure.

    Args:
        sheet: what to draw; a panel without a value is left out, a sheet has one with values.
        folder: of the files.

    Returns:
        The file written, ``<name>.svg``.
    """
    plt = load_pyplot()
    with plt.rc_context(STYLE):
        shown = [index for index, panel in enumerate(sheet.panels) if panel.has_values]
        panels = [sheet.panels[index] for index in shown]
        widths = [sheet.widths[index] if sheet.widths else _WIDTH for index in shown]
        columns = min(sheet.columns or len(panels), len(panels))
        widths = widths[:columns]
        rows = -(-len(panels) // columns)
        figure, grid = plt.subplots(
            rows,
            columns,
            figsize=(sum(widths), rows * sheet.height),
            width_ratios=widths,
            layout="constrained",
            squeeze=False,
        )
        drawn = list(zip(grid.flat, panels, strict=False))
        for axes, panel in drawn:
            _draw_panel(axes, panel)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        if remark := full_remark(sheet):
            text = "\n".join(fill(line, round(15 * sum(widths))) for line in remark.split("\n"))
            figure.supxlabel(text, fontsize=7.5, color=GREY, x=0.01, ha="left")
        escape_texts(figure)
        figure.draw_without_rendering()  # labels need the final places of the points
        for axes, panel in drawn:
            _label(axes, panel)
        path = write_figure(figure, folder / sheet.name)
        plt.close(figure)
    return path


def full_remark(sheet: Sheet) -> str:
    """Return what is under a figure: its remark, and what the mark of one conversation means where a curve has it."""
    lacking = [panel.title for panel in sheet.panels if not panel.has_values]
    left_out = (
        f" Left out, nothing printed or measured: {', '.join(lacking)}."
        if lacking and len(lacking) < len(sheet.panels)
        else ""
    )
    remark = f"{sheet.remark}{left_out}"
    points = (point for panel in sheet.panels for curve in panel.curves for point in curve.values.values())
    return f"{remark}\n{ONE_CONVERSATION}." if any(point.by_question for point in points) else remark


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.kind == "stages":
        draw_stages(axes, panel)
        return
    {"bars": _bars, "lines": _lines, "points": _points}[panel.kind](axes, panel)
    for level in panel.levels:
        axes.axhline(level.value, color=_colour(level.colour), linestyle="--", linewidth=1.1)
    if panel.limits is not None:
        axes.set_xlim(*panel.limits)
    if panel.kind == "bars":
        axes.set_ylim(bottom=0)
        axes.margins(y=0.12)
        _bar_legend(axes, panel)
    else:
        axes.margins(y=0.12)
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))


def _bar_legend(axes: "Axes", panel: Panel) -> None:
    """Close above the bars, where more than one quantity needs a name; a single one is named by the axis."""
    if len(panel.curves) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=7.5, borderpad=0)
    else:
        (curve,) = panel.curves
        name = marked(curve.label, curve.values.values())
        axes.set_ylabel(name if curve.label == panel.y else f"{name}: {panel.y}")


def _label(axes: "Axes", panel: Panel) -> None:
    """Name points and lines where they are."""
    curves = [curve for curve in panel.curves if curve.values]
    if panel.kind in ("bars", "stages") or not curves:
        return
    if panel.kind == "points" and not panel.places:
        named = [
            (marked(curve.label, curve.values.values()), float(x), point.value, _shade(curve))
            for curve in curves
            for x, point in curve.values.items()
            if curve.origin != "computed"
        ]
        label_points(axes, named)
        return
    ends = [_end(curve, panel, _offset(panel, curve)) for curve in curves]
    right = axes.get_xlim()[1]
    label_ends(axes, ends + [(level.label, right, level.value, _colour(level.colour)) for level in panel.levels])


def _offset(panel: Panel, curve: Curve) -> float:
    """Return the offset of a curve's marks, so that systems do not cover each other."""
    step = min(0.12, 0.7 / len(panel.curves))
    return (panel.curves.index(curve) - (len(panel.curves) - 1) / 2) * step


def _end(curve: Curve, panel: Panel, offset: float) -> Label:
    """Return the last point of a curve with its name."""
    if panel.places:
        place = [place for place in panel.places if place in curve.values][-1]
        x, y = panel.places.index(place) + offset, curve.values[place].value
    else:
        last = max(curve.values, key=float)
        x, y = float(last), curve.values[last].value
    return marked(curve.label, curve.values.values()), x, y, _shade(curve)


def _shade(curve: Curve) -> str:
    return GREY if curve.origin == "reference" else _colour(curve.colour)


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
        drawn = axes.bar([x for x, _ in found], [point.value for _, point in found], **style)
        if not any(point.high > point.low for _, point in found):
            axes.bar_label(drawn, fmt="{:,.4g}", fontsize=6.5, color=GREY, padding=1)
        _whiskers(axes, [x for x, _ in found], [point for _, point in found])
    axes.set_xticks(range(len(panel.places)), [place.replace(" ", "\n", 1) for place in panel.places], fontsize=8)
    axes.grid(visible=False, axis="x")


def _whiskers(axes: "Axes", x: Sequence[float], points: Sequence[Point]) -> None:
    known = [(place, point) for place, point in zip(x, points, strict=True) if point.high > point.low]
    if known:
        axes.errorbar(
            [place for place, _ in known],
            [point.value for _, point in known],
            yerr=bar_lengths([point for _, point in known]),
            linestyle="none",
            ecolor=GREY,
            elinewidth=1.0,
            capsize=2,
        )


def _lines(axes: "Axes", panel: Panel) -> None:
    for curve in panel.curves:
        found = sorted(((float(x), point) for x, point in curve.values.items()), key=lambda item: item[0])
        _errorbar(axes, curve, [x for x, _ in found], [point for _, point in found], "-")
    if panel.logarithmic:
        log_axis(axes)
        log_axis(axes, "y", between=False)
    for x, y in panel.crossings:
        axes.plot(x, y, color="black", marker="|", markersize=11, zorder=3)


def _points(axes: "Axes", panel: Panel) -> None:
    for curve in panel.curves:
        if panel.places:
            offset = _offset(panel, curve)
            found = [(i + offset, curve.values[place]) for i, place in enumerate(panel.places) if place in curve.values]
        else:
            found = sorted(((float(x), point) for x, point in curve.values.items()), key=lambda item: item[0])
        line = "-" if curve.origin == "computed" else "none"
        _errorbar(axes, curve, [x for x, _ in found], [point for _, point in found], line)
    if panel.places:
        axes.set_xticks(range(len(panel.places)), panel.places, rotation=30, ha="right", fontsize=8)
        axes.set_xlim(-0.5, len(panel.places) - 0.5)
    else:
        axes.margins(x=0.15)
        costs = [float(x) for curve in panel.curves for x in curve.values]
        if min(costs) > 0 and max(costs) / min(costs) > _WIDE:
            log_axis(axes)


def _marker(curve: Curve) -> str:
    if curve.origin in ("computed", "reference"):
        return "" if curve.origin == "computed" else "x"
    return MARKERS[curve.colour % len(MARKERS)]


def _errorbar(axes: "Axes", curve: Curve, x: Sequence[float], points: Sequence[Point], line: str) -> None:
    colour = _shade(curve)
    style: dict[str, Any] = {
        "color": colour,
        "marker": _marker(curve),
        "markersize": 5.5,
        "markerfacecolor": "white" if curve.origin == "measured" else colour,
        "markeredgecolor": colour,
        "linestyle": line,
        "linewidth": 1.2,
    }
    values = [point.value for point in points]
    if any(point.high > point.low for point in points):
        axes.errorbar(x, values, yerr=bar_lengths(points), elinewidth=1.0, capsize=2, **style)
    else:
        axes.plot(x, values, **style)
