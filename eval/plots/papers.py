"""The papers' figures: printed numbers, and measured ones where there are runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from eval.papers.printed import TEXT, PrintedNumber
from eval.plots.figures import Point, point_of
from eval.plots.sheet import Curve, Level, Panel, Place, Sheet, exact
from eval.tables.model import Cell, Table

#: Tables that the figures need, by paper.
NEEDED: Mapping[str, tuple[int, ...]] = {"memfly": (2, 3), "sage": (7,), "xmemory": (4, 6)}
_HOLLOW = "Filled: printed. Hollow or hatched: measured, with its 95 % interval."
_CONSTRUCTION = ("MEMFLY", "w/o Update", "w/o Denoise", "w/o Link", "w/o Merge")
_RETRIEVAL = ("MEMFLY", "w/o Topic", "w/o Keyword", "w/o Neighbor", "w/o IER")
_CATEGORIES = ("Multi Hop", "Temporal", "Open Domain", "Single Hop", "Adversarial")


@dataclass(frozen=True, slots=True)
class Source:
    """What figures are made from: tables by paper and number, and printed numbers by paper."""

    tables: Mapping[tuple[str, int], Table]
    printed: Mapping[str, Sequence[PrintedNumber]]

    def printed_values(self, paper: str, table: int, column: str, backbone: str = "") -> dict[Place, Point]:
        """Printed values of a column by row."""
        return {
            row: exact(cell.printed.value)
            for row, cell in _column(self.tables[paper, table], column, backbone)
            if cell.printed is not None
        }

    def measured_values(self, paper: str, table: int, column: str, backbone: str = "") -> dict[Place, Point]:
        """Measured values of a column by row."""
        return {
            row: point_of(cell.measured.value, cell.measured.interval)
            for row, cell in _column(self.tables[paper, table], column, backbone)
            if cell.measured is not None and cell.printed is not None
        }

    def text(self, paper: str, **wanted: object) -> list[PrintedNumber]:
        """Numbers that a paper prints outside its tables."""
        return [
            number
            for number in self.printed[paper]
            if number.table == TEXT and all(getattr(number, name) == value for name, value in wanted.items())
        ]


def _column(table: Table, column: str, backbone: str) -> list[tuple[str, Cell]]:
    return [
        (row.label, cell)
        for block, row, heading, cell in table.cells
        if heading.label == column and block.in_paper and backbone in ("", block.backbone)
    ]


def paper_sheets(source: Source) -> list[Sheet]:
    """Make the figures of MemFly, SAGE and xMemory."""
    return [
        memfly_figure_2(source),
        sage_figure_2(source),
        sage_figure_3(source),
        sage_figure_4(source),
        xmemory_figure_3(source),
        xmemory_figure_4(source),
        xmemory_figure_5(source),
    ]


def memfly_figure_2(source: Source) -> Sheet:
    """F1 by category for the full system, overall for each ablation."""
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
        f"MemFly, Figure 2, LoCoMo on Qwen3-8B. {_HOLLOW} The paper prints no number for its ablations' bars by "
        "category; their averages are Table 3's, the full system's categories Table 2's."
    )
    return Sheet("memfly_figure2", tuple(panels), remark)


_THRESHOLDS = (0.08, 0.32)
_SAGE_COLUMNS = (("B1", "BLEU-1"), ("F1", "token F1"), ("J", "judge"))


def _threshold_panel(source: Source, backbone: str, title: str) -> Panel:
    curves, levels = [], []
    for colour, (column, label) in enumerate(_SAGE_COLUMNS):
        printed = source.printed_values("sage", 7, column, backbone)
        measured = source.measured_values("sage", 7, column, backbone)
        curves.append(Curve(f"{label}, fixed", _by_threshold(printed), colour))
        levels.append(Level(f"{label}, adaptive", printed["adaptive"].value, colour))
        if _by_threshold(measured):
            curves.append(Curve(f"{label}, fixed, measured", _by_threshold(measured), colour, "measured"))
    return Panel(
        title, "fixed threshold", "score (%)", "lines", tuple(curves), levels=tuple(levels), limits=_THRESHOLDS
    )


def _by_threshold(values: Mapping[Place, Point]) -> dict[Place, Point]:
    return {float(row): point for row, point in values.items() if row != "adaptive"}


def sage_figure_2(source: Source) -> Sheet:
    """Quality under fixed thresholds on Qwen2.5-3B, and the calls that merging takes."""
    calls = source.text("sage", metric="update_calls")
    by_system = {number.system: number.value for number in calls}
    values: dict[Place, Point] = {
        "fixed 0.10": exact(by_system["sage_fixed_010"]),
        "adaptive": exact(by_system["sage"]),
    }
    right = Panel(
        "calls for merging", "threshold", "calls", "bars", (Curve("printed", values, 3),), tuple(map(str, values))
    )
    remark = (
        f"SAGE, Figure 2, a fifth of LoCoMo on Qwen2.5-3B. {_HOLLOW} Of the right panel the paper prints two numbers: "
        "the calls at 0.10 and those of the adaptive threshold."
    )
    return Sheet("sage_figure2", (_threshold_panel(source, "qwen25_3b", "quality, Qwen2.5-3B"), right), remark)


def thresholds(settings: Mapping[str, float], steps: int) -> list[float]:
    """SAGE's adaptive threshold while the store is so dense that its goal is the floor.

    Eq. 1 with the printed settings: the first call finds an empty store, every later one a dense one.

    Args:
        settings: ``tau_0``, ``tau_min``, ``lambda`` and ``alpha``.
        steps: calls.
    """
    floor, base, alpha = settings["tau_min"], settings["tau_0"], settings["alpha"]
    found = [floor + base * exp(-settings["lambda"] * 0.0)]
    while len(found) < steps:
        found.append(alpha * found[-1] + (1 - alpha) * floor)
    return found


def sage_figure_3(source: Source) -> Sheet:
    """The threshold's decay and the band in which facts are merged."""
    settings = {number.row: number.value for number in source.text("sage", metric="hyperparameter")}
    values = thresholds(settings, 60)
    lower: dict[Place, Point] = {step + 1: exact(value) for step, value in enumerate(values)}
    upper: dict[Place, Point] = {step: exact(point.value + settings["delta"]) for step, point in lower.items()}
    curves = (
        Curve("below: ignored", lower, 0, "computed"),
        Curve("above: added", upper, 1, "computed"),
    )
    panel = Panel("adaptive threshold", "call that adds messages", "novelty", "lines", curves)
    remark = (
        "SAGE, Figure 3. The paper prints no number of it. Computed from its formula and printed settings for a store "
        "that is dense from the second call on; in between, facts are merged."
    )
    return Sheet("sage_figure3", (panel,), remark, (6.6,))


def sage_figure_4(source: Source) -> Sheet:
    """Quality under fixed thresholds on both backbones of the ablation."""
    panels = tuple(
        _threshold_panel(source, backbone, title)
        for backbone, title in (("qwen25_15b", "Qwen2.5-1.5B"), ("qwen25_3b", "Qwen2.5-3B"))
    )
    return Sheet("sage_figure4", panels, f"SAGE, Figure 4, a fifth of LoCoMo. {_HOLLOW}")


def _score_bars(source: Source, table: int, title: str) -> Panel:
    curves, rows = [], tuple(map(str, source.printed_values("xmemory", table, "Average F1")))
    for colour, (column, label) in enumerate((("Average BLEU", "BLEU"), ("Average F1", "F1"))):
        curves.append(Curve(label, source.printed_values("xmemory", table, column), colour))
        measured = source.measured_values("xmemory", table, column)
        curves += [Curve(f"{label}, measured", measured, colour, "measured")] if measured else []
    return Panel(title, "", "average (%)", "bars", tuple(curves), rows)


def _one_bar(source: Source, table: int, column: str, label: str, title: str) -> Panel:
    printed = source.printed_values("xmemory", table, column)
    measured = source.measured_values("xmemory", table, column)
    curves = [Curve(label, printed, 2)]
    curves += [Curve(f"{label}, measured", measured, 2, "measured")] if measured else []
    return Panel(title, "", label, "bars", tuple(curves), tuple(map(str, printed)))


def xmemory_figure_3(source: Source) -> Sheet:
    """Ablation: scores, and tokens per question."""
    panels = (
        _score_bars(source, 4, "scores"),
        _one_bar(source, 4, "Token/query", "tokens per question", "cost"),
    )
    remark = f"xMemory, Figure 3, LoCoMo on Qwen3-8B; Table 4 has the same numbers. {_HOLLOW}"
    return Sheet("xmemory_figure3", panels, remark, (5.4, 5.0))


def xmemory_figure_4(source: Source) -> Sheet:
    """Blocks that hold two, or more, words of the answer, in multi-hop questions."""
    curves = []
    for colour, (metric, label) in enumerate((("two_hit_share", "two words"), ("multi_hit_share", "three or more"))):
        values: dict[Place, Point] = {n.row: exact(n.value) for n in source.text("xmemory", metric=metric)}
        curves.append(Curve(label, values, colour))
    places = tuple(str(place) for place in curves[0].values)
    panel = Panel("multi-hop questions", "", "retrieved blocks (%)", "bars", tuple(curves), places)
    remark = (
        "xMemory, Figure 4, LoCoMo on Qwen3-8B: retrieved blocks by words of the answer that they hold. Six of the "
        "figure's numbers are printed, in Section 5.2; of the other categories and of single words there are none."
    )
    return Sheet("xmemory_figure4", (panel,), remark, (6.6,))


def xmemory_figure_5(source: Source) -> Sheet:
    """Restructuring: scores, and the share of facts that change their theme."""
    panels = (
        _score_bars(source, 6, "scores"),
        _one_bar(source, 6, "Reassign ratio", "facts reassigned (%)", "plasticity"),
    )
    remark = f"xMemory, Figure 5, LoCoMo on Qwen3-8B; Table 6 has the same numbers. {_HOLLOW}"
    return Sheet("xmemory_figure5", panels, remark, (5.4, 5.0))
