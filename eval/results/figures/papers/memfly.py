"""MemFly: its figures."""

from eval.results.drawing.figure_spec import Curve, Panel, Place, Sheet
from eval.results.drawing.figures import Point
from eval.results.figures.source import HOLLOW, Source

#: Tables that the figures are made from.
NEEDED = (2, 3)
_CONSTRUCTION = ("MEMFLY", "w/o Update", "w/o Denoise", "w/o Link", "w/o Merge")
_RETRIEVAL = ("MEMFLY", "w/o Topic", "w/o Keyword", "w/o Neighbor", "w/o IER")
_CATEGORIES = ("Multi Hop", "Temporal", "Open Domain", "Single Hop", "Adversarial")


def sheets(source: Source) -> list[Sheet]:
    """Make the figures."""
    return [memfly_figure_2(source)]


def memfly_figure_2(source: Source) -> Sheet:
    """Return F1 by category for the full system, overall for each ablation."""
    full: dict[Place, Point] = {
        category: source.printed_values("memfly", 2, f"{category} F1", "qwen3_8b")["MEMFLY"] for category in _CATEGORIES
    }
    panels = []
    for title, rows in (("(a) construction", _CONSTRUCTION), ("(b) retrieval", _RETRIEVAL)):
        printed = source.printed_values("memfly", 3, "F1")
        measured = source.measured_values("memfly", 3, "F1")
        curves = [Curve("printed F1", {row: printed[row] for row in rows}, 0)]
        known: dict[Place, Point] = {row: measured[row] for row in rows if row in measured}
        curves += [Curve("measured F1", known, 0, "measured")] if known else []
        panels.append(Panel(title, "", "average F1 (%)", "bars", tuple(curves), rows))
    panels.insert(0, Panel("full system", "", "F1 (%)", "bars", (Curve("printed F1", full, 0),), _CATEGORIES))
    remark = (
        f"MemFly, Figure 2, LoCoMo on Qwen3-8B. {HOLLOW} The paper prints no number for its ablations' bars by "
        "category; their averages are Table 3's, the full system's categories Table 2's."
    )
    return Sheet("memfly_figure2", tuple(panels), remark)
