"""Our own figures: what accuracy costs, what evidence is worth, and what the definition of F1 alone moves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from eval.metrics.registry import METRICS, TOKEN_F1
from eval.results.compare.rows import ComparisonEstimate, SystemRow, estimate, f1_metric, system_rows
from eval.results.drawing.figure_spec import Curve, Origin, Panel, Place, Sheet
from eval.results.drawing.style import Point
from eval.results.stored_run import NO_BACKBONE, StoredRun
from eval.results.tables.groups import comparable_runs
from eval.scoring.estimates import mean_value
from eval.scoring.protocols import Protocol

_INTERVALS = "Bars: 95 % cluster t interval"
_LATENCY = "end_to_end_ms"


@dataclass(frozen=True, slots=True)
class PlotGroup:
    """Runs on the same questions with the same backbone, and the floors on these questions."""

    name: str
    title: str
    runs: tuple[StoredRun, ...]
    floors: tuple[StoredRun, ...]


def groups(runs: Sequence[StoredRun]) -> list[PlotGroup]:
    """Sort answering runs into groups whose members can be compared.

    Args:
        runs: complete runs.

    Returns:
        Groups of at least one run, by data set, backbone and whose prompts; those that asked other questions are apart.
    """
    found = comparable_runs(run for run in runs if run.backbone != NO_BACKBONE and not run.times_questions)
    floors = [run for run in runs if run.floor]
    return [
        PlotGroup(
            group.key,
            group.title(),
            group.runs,
            tuple(cut for floor in floors if (cut := _cut(floor, group.asked)) is not None),
        )
        for group in sorted(found, key=lambda group: (group.setting, group.asked))
    ]


def _cut(floor: StoredRun, asked: Sequence[str]) -> StoredRun | None:
    """Return a floor on a group's questions; ``None`` when it does not know all of them."""
    wanted = set(asked)
    rows = tuple(row for row in floor.rows if row.question_id in wanted)
    return replace(floor, rows=rows) if len(rows) == len(wanted) else None


def own_sheets(group: PlotGroup, protocol: Protocol) -> list[Sheet]:
    """Make the figures of one group: those that have something to show."""
    rows = short_labels(system_rows(group.runs, protocol))
    found = [
        pareto(group, rows, protocol),
        evidence(group, rows, protocol),
        definitions(group, [*rows, *system_rows(group.floors, protocol)], protocol),
    ]
    return [sheet for sheet in found if any(panel.has_values for panel in sheet.panels)]


def short_labels(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """Return the rows named by their memory alone where that is unique."""
    repeated = Counter(row.run.memory for row in rows)
    return [replace(row, label=row.run.memory) if repeated[row.run.memory] == 1 else row for row in rows]


def pareto(group: PlotGroup, rows: Sequence[SystemRow], protocol: Protocol) -> Sheet:
    """Return F1 against calls, tokens and latency; systems that no other beats on both are joined."""
    costs: tuple[tuple[str, Callable[[SystemRow], float | None]], ...] = (
        ("calls per question", lambda row: _value(row.estimates.get("calls"))),
        ("tokens per question", lambda row: _value(row.estimates.get("tokens"))),
        ("latency per question (ms)", lambda row: mean_value(row.run.rows, _LATENCY, None, protocol)),
    )
    panels = tuple(_pareto_panel(name, cost, rows) for name, cost in costs)
    remark = (
        f"{group.title}; protocol {protocol.name}. {_INTERVALS}. Line, where intervals do not overlap: no other "
        "system is as good for less. Grey crosses: references, which are no choice. "
        "Latency comes from runs that time one question after the other."
    )
    return Sheet(f"pareto_{group.name}", panels, remark)


def _value(found: ComparisonEstimate | None) -> float | None:
    return None if found is None else found.value


def _pareto_panel(name: str, cost: Callable[[SystemRow], float | None], rows: Sequence[SystemRow]) -> Panel:
    known = [
        (number, row, price)
        for number, row in enumerate(rows)
        if "F1" in row.estimates and (price := cost(row)) is not None
    ]
    curves = [
        Curve(row.label, {price: row.estimates["F1"].point}, number, _origin(row)) for number, row, price in known
    ]
    ranked = [(price, row.estimates["F1"].point) for _, row, price in known if not row.run.reference]
    return Panel(f"F1 against {name.split(' per ')[0]}", name, "F1 (%)", "points", (*curves, *_front(ranked)))


def _origin(row: SystemRow) -> Origin:
    return "reference" if row.run.reference else "measured"


def _front(points: Sequence[tuple[float, Point]]) -> list[Curve]:
    """Return the systems that no other beats on both, joined; nothing where two neighbours' intervals overlap."""
    known = {(price, point.value): point for price, point in points}
    front = [(price, known[price, value]) for price, value in pareto_front(list(known))]
    overlap = any(high.low <= low.high for (_, low), (_, high) in pairwise(front))
    if len(front) < 2 or overlap:
        return []
    values: dict[Place, Point] = {price: Point(point.value, point.value, point.value) for price, point in front}
    return [Curve("not beaten on both", values, 5, "computed")]


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other matches at a lower or equal cost with a higher or equal value, by rising cost.

    Args:
        points: cost and value of each.
    """
    front: list[tuple[float, float]] = []
    for cost, value in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not front or value > front[-1][1]:
            front.append((cost, value))
    return front


def evidence(group: PlotGroup, rows: Sequence[SystemRow], protocol: Protocol) -> Sheet:
    """Return the recall of the evidence against the F1 of the answers, on questions that have an answer."""
    answerable = replace(protocol, adversarial="exclude")
    curves = []
    for number, row in enumerate(rows):
        recall = mean_value(row.run.rows, "recall@10", None, answerable)
        answers = estimate(row.run, f1_metric(protocol), answerable)
        if recall is not None and answers is not None:
            curves.append(Curve(row.label, {100 * recall: answers.point}, number, _origin(row)))
    panel = Panel("evidence and answers", "evidence recall@10 by turn ids (%)", "F1 (%)", "points", tuple(curves))
    left_out = max((sum(not answerable.counts(score.kind) for score in row.run.rows) for row in rows), default=0)
    without = f", without the {left_out} that have no answer" if left_out else ""
    remark = f"{group.title}{without}; protocol {protocol.name}. {_INTERVALS}."
    return Sheet(f"evidence_{group.name}", (panel,), remark, (6.0,))


def definitions(group: PlotGroup, rows: Sequence[SystemRow], protocol: Protocol) -> Sheet:
    """Return the same answers under every definition of token F1."""
    curves = []
    named = {metric.name: metric.whose for metric in METRICS.values() if metric.group == TOKEN_F1 and metric.whose}
    for number, row in enumerate(rows):
        found = {label: estimate(row.run, metric, protocol) for metric, label in named.items()}
        values: dict[Place, Point] = {label: value.point for label, value in found.items() if value is not None}
        curves.append(Curve(row.label, values, number, _origin(row)))
    panel = Panel(
        "one set of answers", "definition of token F1", "F1 (%)", "points", tuple(curves), tuple(named.values())
    )
    remark = f"{group.title}; protocol {protocol.name}. {_INTERVALS}.{_about_floors(group)}"
    return Sheet(f"definitions_{group.name}", (panel,), remark, (8.4,))


def _about_floors(group: PlotGroup) -> str:
    names = sorted({floor.memory for floor in group.floors})
    if not names:
        return ""
    expected = " coin_flip is an expected value." if "coin_flip" in names else ""
    return f" {', '.join(names)}: answers given without reading anything.{expected}"
