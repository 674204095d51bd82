"""The figure of memory quality: how much of the gold evidence reaches each stage, one panel for each system."""

from collections.abc import Mapping, Sequence

from eval.commands.rendering.table import DASH
from eval.results.drawing.figure_spec import Curve, Panel, Place, Sheet, exact
from eval.results.drawing.style import Point
from eval.results.own.memory_quality import QualityGroup, SystemQuality, quality_groups
from eval.results.own.stages import STAGES
from eval.results.stored_run import StoredRun

_EVIDENCE = ("stored", "retrieved at 5", "retrieved at 10", "in context")
_SCORE = "F1"
_COLUMNS, _WIDTH, _HEIGHT = 3, 2.6, 2.5
#: Least width of the figure, and height of a single row, in inches: the text below needs room.
_LEAST_WIDTH, _ONE_ROW = 6.2, 3.2
#: Letters of a title above a panel.
_LONGEST = 30


def funnel_sheets(runs: Sequence[StoredRun]) -> list[Sheet]:
    """Make one figure for each group of answering runs with known evidence."""
    groups = [group for group in quality_groups(runs) if any(_drawn(one) for one in group.systems)]
    return [_sheet(group) for group in groups]


def _drawn(one: SystemQuality) -> bool:
    return bool(one.funnels) and not one.run.retrieval_only


def _sheet(group: QualityGroup) -> Sheet:
    shown = [one for one in group.systems if _drawn(one)]
    counts = sorted({one.funnels[0].questions for one in shown})
    remark = (
        f"{group.title}; {' or '.join(map(str, counts))} of them with gold evidence. Share of a question's gold turns "
        "that is stored, among the first 5 and 10 retrieved memories and in the context; hatched: F1 of the questions "
        "of which all gold turns came that far, where there is one, and last of all questions; means in percent. An "
        "entry that was merged or rewritten counts for every turn it came from. "
        f"{DASH} nothing is ranked, or not known."
    )
    panels = tuple(_panel(one, title) for one, title in zip(shown, _titles(shown), strict=True))
    width = max(_WIDTH, _LEAST_WIDTH / min(len(panels), _COLUMNS))
    height = _ONE_ROW if len(panels) <= _COLUMNS else _HEIGHT
    return Sheet(f"funnel_{group.key}", panels, remark, (width,) * len(panels), _COLUMNS, height)


def _panel(one: SystemQuality, title: str) -> Panel:
    funnel = one.funnels[0]
    shares = (funnel.stored, funnel.at_5, funnel.at_10, funnel.shown)
    complete = (*(funnel.complete.get(stage) for stage in STAGES), funnel.reached.get("whole"))
    scores = (*(found.score if found else None for found in complete), funnel.score)
    curves = (
        Curve("evidence", _values(_EVIDENCE, shares), 0),
        Curve("answers", _values((*_EVIDENCE, _SCORE), scores), 1),
    )
    return Panel(title, "", "", "stages", curves, (*_EVIDENCE, _SCORE), limits=(0, 118))


def _values(places: Sequence[str], values: Sequence[float | None]) -> Mapping[Place, Point]:
    return {place: exact(value) for place, value in zip(places, values, strict=True) if value is not None}


def _titles(systems: Sequence[SystemQuality]) -> list[str]:
    """Return the memories' names where they are unique, else numbered labels, cut to a panel's width."""
    memories = [one.run.memory for one in systems]
    if len(set(memories)) == len(memories):
        return memories
    return [f"{number} {one.label}"[:_LONGEST].rstrip(" ,") for number, one in enumerate(systems, start=1)]
