"""A panel of stages, one below the other: each with its name and a horizontal bar of every curve that has it."""

from typing import TYPE_CHECKING

from eval.commands.rendering.table import DASH
from eval.results.drawing.figure_spec import Panel
from eval.results.drawing.style import GREY, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 8
#: Of the bars of a stage together, where stages are one apart.
_HEIGHT = 0.72
#: Hatches of the curves, so that they differ without colour.
_HATCHES = ("", "///")


def draw_stages(axes: "Axes", panel: Panel) -> None:
    """Draw a panel's places from top to bottom; a place that no curve has gets a dash."""
    height = _HEIGHT / max(len(panel.curves), 1)
    for number, place in enumerate(panel.places):
        found = [curve for curve in panel.curves if place in curve.values]
        for place_in_row, curve in enumerate(found):
            middle = number + (place_in_row - (len(found) - 1) / 2) * height
            value, colour = curve.values[place].value, PALETTE[curve.colour % len(PALETTE)]
            hatch = _HATCHES[curve.colour % len(_HATCHES)]
            axes.barh(middle, value, height, facecolor="white" if hatch else colour, edgecolor=colour, hatch=hatch)
            axes.text(value + 1.5, middle, f"{value:.1f}", va="center", fontsize=_SIZE, color=GREY)
        if not found:
            axes.text(1.5, number, DASH, va="center", fontsize=_SIZE, color=GREY)
    axes.set_yticks(range(len(panel.places)), panel.places, fontsize=_SIZE)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(panel.places) - 0.5, -0.5)
    axes.set_xlim(*(panel.limits or (0, 100)))
    axes.set_xticks([0, 50, 100], ["0", "50", "100 %"], fontsize=_SIZE)
    axes.grid(visible=False, axis="y")
