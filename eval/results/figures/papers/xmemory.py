"""xMemory: its figures."""

from eval.results.drawing.figure_spec import Curve, Panel, Place, Sheet, exact
from eval.results.drawing.style import Point
from eval.results.figures.source import HOLLOW, Source

#: Tables that the figures are made from.
NEEDED = (4, 6)


def sheets(source: Source) -> list[Sheet]:
    """Make the figures."""
    return [xmemory_figure_3(source), xmemory_figure_4(source), xmemory_figure_5(source)]


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
    """Return the ablation: scores, and tokens per question."""
    panels = (
        _score_bars(source, 4, "scores"),
        _one_bar(source, 4, "Token/query", "tokens per question", "cost"),
    )
    remark = f"xMemory, Figure 3, LoCoMo on Qwen3-8B; Table 4 has the same numbers. {HOLLOW}"
    return Sheet("xmemory_figure3", panels, remark, (5.4, 5.0))


def xmemory_figure_4(source: Source) -> Sheet:
    """Return the blocks that hold two, or more, words of the answer, in multi-hop questions."""
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
    """Return the restructuring: scores, and the share of facts that change their theme."""
    panels = (
        _score_bars(source, 6, "scores"),
        _one_bar(source, 6, "Reassign ratio", "facts reassigned (%)", "plasticity"),
    )
    remark = f"xMemory, Figure 5, LoCoMo on Qwen3-8B; Table 6 has the same numbers. {HOLLOW}"
    return Sheet("xmemory_figure5", panels, remark, (5.4, 5.0))
