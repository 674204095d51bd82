"""Plots: readable without colour, labelled with units, the same bytes for the same numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eval.commands import escaping
from eval.runs.files import disk_error
from eval.scoring.inference import BY_QUESTION
from memsys.extras import need_package

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from eval.scoring.inference import Interval

#: Okabe and Ito (2008): told apart with every common kind of colour blindness. Black and yellow are left out.
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
    "text.parse_math": False,  # a dollar sign in a name is no formula
}
GREY = "#444444"
#: Systems that stand beside each other in a plot; of more, each has a row.
MOST_BESIDE = 8


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval; ``low`` and ``high`` equal it where there is none.

    ``by_question`` says that the interval resamples the questions of one conversation.
    """

    value: float
    low: float
    high: float
    by_question: bool = False


def point_of(value: float, interval: "Interval | None") -> Point:
    """A value with the ends of its interval, where it has one."""
    if interval is None:
        return Point(value, value, value)
    return Point(value, interval.low, interval.high, interval.by == "question")


def marked(label: str, points: Iterable[Point]) -> str:
    """A label with the mark of intervals that resample the questions of one conversation, where one of them does."""
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


def plot_comparison(series: Sequence[Series], wording: Wording, out: Path) -> Path:
    """Draw values by group, overall values and cost, and write ``<out>.svg``.

    Up to :data:`MOST_BESIDE` systems stand beside each other in each group; of more, each has a row.

    Args:
        series: one per system.
        wording: texts.
        out: path without suffix.

    Returns:
        The file written.
    """
    plt = load_pyplot()
    with plt.rc_context(STYLE):
        groups = list(dict.fromkeys(group for one in series for group in one.groups))
        costly = any(one.overall is not None and one.cost is not None for one in series)
        beside = len(series) <= MOST_BESIDE
        if not beside:
            from eval.results.figures.rows import draw_rows

            figure = draw_rows(series, groups, wording)
        else:
            figure = _draw_beside(series, groups, wording, costly=costly)
        said = wording.remark if costly else f"{wording.remark} There is no cost recorded."
        remark = "\n".join(fill(line, round(13 * figure.get_figwidth())) for line in said.split("\n"))
        figure.supxlabel(remark, fontsize=7.5, color=GREY, x=0.01, ha="left")
        if costly and beside:
            _label_costs(figure, figure.axes[1], series)
        path = write_figure(figure, out)
        plt.close(figure)
    return path


def _draw_beside(series: Sequence[Series], groups: Sequence[str], wording: Wording, *, costly: bool) -> "Figure":
    """Draw a few systems beside each other in every group, and their cost in a panel of its own."""
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
    _draw_groups(grid[0][0], series, groups, wording)
    if costly:
        _draw_cost(grid[0][1], series, wording)
    _legend(figure, grid[0][0], len(series))
    return figure


def label_of(series: Series) -> str:
    """Name of a system, with the mark of intervals over questions."""
    return marked(series.label, [*series.groups.values(), *([series.overall] if series.overall else [])])


def _draw_groups(axes: "Axes", series: Sequence[Series], groups: Sequence[str], wording: Wording) -> None:
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
    axes.set_ylabel(f"{wording.metric} (%)")
    axes.set_title(f"{wording.metric} by question category", loc="left")


def _draw_cost(axes: "Axes", series: Sequence[Series], wording: Wording) -> None:
    axes.set_title(f"{wording.metric} against cost", loc="left")
    axes.set_xlabel(wording.cost)
    axes.set_ylabel(f"{wording.metric} over all counted questions (%)")
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


def log_axis(axes: "Axes", *, between: bool = True) -> None:
    """Make the horizontal axis logarithmic, with plain numbers: an SVG keeps text, and so would show raw math.

    Args:
        axes: whose axis.
        between: number the threes between the powers of ten too.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if between else (1,)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _label_costs(figure: "Figure", axes: "Axes", series: Sequence[Series]) -> None:
    """Name each point where it is."""
    from eval.results.figures.labels import label_points

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


def bar_lengths(points: Sequence[Point]) -> list[list[float]]:
    """How far the intervals reach below and above their values, as matplotlib takes it."""
    below = [max(0.0, point.value - point.low) for point in points]
    return [below, [max(0.0, point.high - point.value) for point in points]]


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
