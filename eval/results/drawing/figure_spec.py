"""Parts of a figure: panels of curves, bars or points, and levels across them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eval.results.drawing.style import Point

#: Where a number comes from, which decides how it is drawn: filled, hollow, as a thin line, or as a
#: grey cross: a reference is not a system to choose.
Origin = Literal["printed", "measured", "computed", "reference"]
#: ``stages``: a horizontal bar for each place, one quantity after the other.
Kind = Literal["lines", "bars", "points", "stages"]
#: On the horizontal axis: a number, or the name of a category.
Place = float | str


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one quantity or system.

    Attributes:
        label: in the legend.
        values: by place on the horizontal axis.
        colour: number of its colour and marker.
        origin: where the values come from.
    """

    label: str
    values: Mapping[Place, Point]
    colour: int
    origin: Origin = "printed"


@dataclass(frozen=True, slots=True)
class Level:
    """A dashed line across a panel."""

    label: str
    value: float
    colour: int


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        x: label of the horizontal axis.
        y: label of the vertical axis, with its unit.
        kind: how the curves are drawn.
        curves: what is drawn.
        places: order of the categories; empty where the horizontal axis has numbers.
        levels: lines across.
        limits: ends of the horizontal axis; ``None`` fits it to the numbers.
        crossings: points where two lines cross.
        logarithmic: both axes, of a panel of lines whose values are positive.
    """

    title: str
    x: str
    y: str
    kind: Kind
    curves: tuple[Curve, ...]
    places: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    limits: tuple[float, float] | None = None
    crossings: tuple[tuple[float, float], ...] = ()
    logarithmic: bool = False

    @property
    def has_values(self) -> bool:
        """Whether there is anything to draw."""
        return any(curve.values for curve in self.curves)


@dataclass(frozen=True, slots=True)
class Sheet:
    """One figure: its file name, its panels side by side, what must be said under it, and widths in inches.

    ``columns``: panels in one row, where all of them do not fit; 0 for one row. ``height``: of a row in inches.
    """

    name: str
    panels: tuple[Panel, ...]
    remark: str = ""
    widths: tuple[float, ...] = ()
    columns: int = 0
    height: float = 3.9


def exact(value: float) -> Point:
    """Return a value without an interval."""
    return Point(value, value, value)
