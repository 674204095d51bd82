"""SAGE: its figures."""

from collections.abc import Mapping
from math import exp

from eval.results.drawing.figure_spec import Curve, Level, Panel, Place, Sheet, exact
from eval.results.drawing.style import Point
from eval.results.figures.source import HOLLOW, Source

#: Tables that the figures are made from.
NEEDED = (7,)


def sheets(source: Source) -> list[Sheet]:
    """Make the figures."""
    return [sage_figure_2(source), sage_figure_3(source), sage_figure_4(source)]


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
    """Return the quality under fixed thresholds on Qwen2.5-3B, and the calls that merging takes."""
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
        f"SAGE, Figure 2, a fifth of LoCoMo on Qwen2.5-3B. {HOLLOW} Of the right panel the paper prints two numbers: "
        "the calls at 0.10 and those of the adaptive threshold."
    )
    return Sheet("sage_figure2", (_threshold_panel(source, "qwen25_3b", "quality, Qwen2.5-3B"), right), remark)


def thresholds(settings: Mapping[str, float], steps: int) -> list[float]:
    """Return SAGE's adaptive threshold while the store is so dense that its goal is the floor.

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
    """Return the threshold's decay and the band in which facts are merged."""
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
    """Return the quality under fixed thresholds on both backbones of the ablation."""
    panels = tuple(
        _threshold_panel(source, backbone, title)
        for backbone, title in (("qwen25_15b", "Qwen2.5-1.5B"), ("qwen25_3b", "Qwen2.5-3B"))
    )
    return Sheet("sage_figure4", panels, f"SAGE, Figure 4, a fifth of LoCoMo. {HOLLOW}")
