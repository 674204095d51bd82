"""Plots: readable without colour, labelled with units, the same bytes for the same numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eval.commands import escaping
from eval.runs.files import disk_error
from eval.scoring.inference import BY_QUESTION
from memsys.extras import need_package

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from eval.scoring.inference import Interval

#: Okabe and Ito (2008): distinguishable with every common kind of colour blindness. Black and yellow are left out.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")

#: Under this every figure is drawn and written; the salt makes the ids in an SVG the same every time.
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "memsys",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is not a formula
}
GREY = "#444444"


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval; ``low`` and ``high`` equal it if there is none.

    ``by_question`` says that the interval resamples the questions of one conversation.
    """

    value: float
    low: float
    high: float
    by_question: bool = False


def point_of(value: float, interval: "Interval | None") -> Point:
    """Return a value with the ends of its interval, where it has one."""
    if interval is None:
        return Point(value, value, value)
    return Point(value, interval.low, interval.high, interval.by == "question")


def marked(label: str, points: Iterable[Point]) -> str:
    """Return a label, marked where an interval resamples the questions of one conversation."""
    return f"{label} {BY_QUESTION}" if any(point.by_question for point in points) else label


@dataclass(frozen=True, slots=True)
class Series:
    """One system: values by group, overall value, and cost."""

    label: str
    groups: Mapping[str, Point]
    overall: Point | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts of the comparison plot: the metric's name, the cost's, and a remark under the plot."""

    metric: str
    cost: str
    remark: str


def load_pyplot() -> Any:
    """Import pyplot, drawing to files.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    need_package("matplotlib", "figures", "drawing a figure")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def label_of(series: Series) -> str:
    """Return the name of a system, with the mark of intervals over questions."""
    return marked(series.label, [*series.groups.values(), *([series.overall] if series.overall else [])])


def log_axis(axes: "Axes", which: Literal["x", "y"] = "x", *, between: bool = True) -> None:
    """Make an axis logarithmic, with plain numbers: an SVG keeps text, and so would show raw math.

    Args:
        axes: whose axis.
        which: the horizontal or the vertical one.
        between: number the threes between the powers of ten too.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 3) if between else (1,)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axis.set_minor_formatter(NullFormatter())


def bar_lengths(points: Sequence[Point]) -> list[list[float]]:
    """Return how far the intervals reach below and above their values, as matplotlib takes it."""
    below = [max(0.0, point.value - point.low) for point in points]
    return [below, [max(0.0, point.high - point.value) for point in points]]


def escape_texts(figure: "Figure") -> None:
    """Write out control characters in all texts of a figure; call it before anything measures or draws them."""
    from matplotlib.text import Text

    for written in figure.findobj(Text):
        written.set_text(escaping.svg(written.get_text()))


def write_figure(figure: "Figure", out: Path) -> Path:
    """Write a figure as SVG, without a date and without the name of a program.

    Args:
        figure: drawn under :data:`STYLE`.
        out: path without suffix.

    Returns:
        The file written.
    """
    escape_texts(figure)
    # a name may hold a dot, as "gpt-4.1-mini" does: `with_suffix` would cut it there
    svg = out.with_name(f"{out.name}.svg")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    except OSError as error:
        raise disk_error(out, error) from error
    return svg
