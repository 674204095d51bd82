"""MemFly: its figures."""

from collections.abc import Mapping

from eval.results.drawing.figure_spec import Curve, Panel, Place, Sheet
from eval.results.drawing.style import Point
from eval.results.figures.source import HOLLOW, Source

#: Tables that the figures are made from.
NEEDED = (2, 3)
_BACKBONE = "qwen3_8b"
_PARTS = {
    "(a) construction": ("MEMFLY", "w/o Update", "w/o Denoise", "w/o Link", "w/o Merge"),
    "(b) retrieval": ("MEMFLY", "w/o Topic", "w/o Keyword", "w/o Neighbor", "w/o IER"),
}
_CATEGORIES = ("Multi Hop", "Temporal", "Open Domain", "Single Hop", "Adversarial")


def sheets(source: Source) -> list[Sheet]:
    """Make the figures."""
    return [memfly_figure_2(source)]


def memfly_figure_2(source: Source) -> Sheet:
    """Return the averages of all ablations, and F1 by category of the full system and of each ablation that was run."""
    full: dict[Place, Point] = {
        category: source.printed_values("memfly", 2, f"{category} F1", _BACKBONE)["MEMFLY"] for category in _CATEGORIES
    }
    measured = {category: source.measured_systems("memfly", 2, f"{category} F1", _BACKBONE) for category in _CATEGORIES}
    systems = source.systems("memfly", 3)
    panels = [Panel("full system", "", "F1 (%)", "bars", (Curve("printed", full, 0),), _CATEGORIES)]
    panels += [_averages(source, title, rows) for title, rows in _PARTS.items()]
    for title, rows in _PARTS.items():
        curves = [_by_category(row, systems[row], measured, colour) for colour, row in enumerate(rows)]
        if found := tuple(curve for curve in curves if curve.values):
            panels.append(Panel(f"{title}, by category", "", "F1 (%)", "bars", found, _CATEGORIES))
    remark = (
        f"MemFly, Figure 2, LoCoMo on Qwen3-8B. {HOLLOW} The paper's bars are the ablations by category and have no "
        "numbers: printed are their averages (Table 3) and the full system's categories (Table 2). By category, the "
        "ablations are drawn where there are runs (memsys reproduce memfly --table 3)."
    )
    return Sheet("memfly_figure2", tuple(panels), remark, columns=3)


def _averages(source: Source, title: str, rows: tuple[str, ...]) -> Panel:
    printed, measured = (get("memfly", 3, "F1") for get in (source.printed_values, source.measured_values))
    curves = [Curve("printed", {row: printed[row] for row in rows}, 0)]
    known: dict[Place, Point] = {row: measured[row] for row in rows if row in measured}
    curves += [Curve("measured", known, 0, "measured")] if known else []
    return Panel(title, "", "average F1 (%)", "bars", tuple(curves), rows)


def _by_category(row: str, system: str, measured: Mapping[str, Mapping[str, Point]], colour: int) -> Curve:
    found: dict[Place, Point] = {category: points[system] for category, points in measured.items() if system in points}
    return Curve(row, found, colour, "measured")
