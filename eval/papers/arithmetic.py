"""Arithmetic on printed numbers: averages, sums, shares and repetitions, recomputed from their printed parts.

A number *follows* when rounding of the number and of its parts explains the difference. Nothing is measured here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from eval.metrics.registry import METRICS
from eval.papers.printed import TEXT, PrintedNumber
from eval.tables.spec import JUDGE

#: LoCoMo's questions by category, as MemFly's Table 4 prints them.
LOCOMO_QUESTIONS: Mapping[int, int] = {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
_ANSWERABLE = {category: count for category, count in LOCOMO_QUESTIONS.items() if category != 5}
_ALIKE = dict.fromkeys(_ANSWERABLE, 1)
#: Float noise, far below any printed digit.
_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A printed number beside what its parts give.

    Attributes:
        number: as printed.
        value: recomputed.
        tolerance: largest difference that rounding explains.
        rule: how it was recomputed.
    """

    number: PrintedNumber
    value: float
    tolerance: float
    rule: str

    @property
    def difference(self) -> float:
        """Printed minus recomputed."""
        return self.number.value - self.value

    @property
    def follows(self) -> bool:
        """Whether rounding explains the difference."""
        return abs(self.difference) <= self.tolerance + _NOISE


@dataclass(frozen=True, slots=True)
class AverageRule:
    """Where overall values stand, where their categories stand, and how these are weighed."""

    paper: str
    overall: int
    parts: int
    weights: Mapping[int, int]
    rule: str


def _counted(paper: str, table: int, weights: Mapping[int, int], parts: int = 0) -> AverageRule:
    where = f"categories of Table {parts}" if parts else "its categories"
    return AverageRule(paper, table, parts or table, weights, f"{where}, weighted by their questions")


AVERAGES = (
    _counted("clag", 1, LOCOMO_QUESTIONS, parts=3),
    *(_counted("xmemory", table, _ANSWERABLE) for table in (1, 4, 5, 6, 8)),
    *(_counted("memfly", table, LOCOMO_QUESTIONS) for table in (1, 2)),
    AverageRule("sage", 1, 1, _ALIKE, "its categories, plain mean"),
)


def averages(paper: str, numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Recompute every average of scores that a paper prints.

    Args:
        paper: name.
        numbers: its printed numbers.
    """
    found = [entry for rule in AVERAGES if rule.paper == paper for entry in _by_category(numbers, rule)]
    return found + _over_backbones(numbers) if paper == "sage" else found


def _is_score(metric: str) -> bool:
    return metric in METRICS or metric == JUDGE


def _by_category(numbers: Sequence[PrintedNumber], rule: AverageRule) -> Iterable[Recomputed]:
    parts = {
        (_cell(number), number.category): number
        for number in numbers
        if number.table == rule.parts and number.category is not None
    }
    total = sum(rule.weights.values())
    for number in numbers:
        if number.table == rule.overall and number.category is None and _is_score(number.metric):
            found = {category: parts.get((_cell(number), category)) for category in rule.weights}
            known = {category: part for category, part in found.items() if part is not None}
            if len(known) == len(rule.weights):
                value = fsum(rule.weights[category] * part.value for category, part in known.items()) / total
                hidden = fsum(rule.weights[category] * part.half_unit for category, part in known.items()) / total
                yield Recomputed(number, value, hidden + number.half_unit, rule.rule)


def _cell(number: PrintedNumber) -> tuple[str, ...]:
    return number.dataset, number.backbone, number.system, number.metric


def _over_backbones(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """SAGE's Table 2: means of Table 1 over the seven open models, Judge scores of another judge left out."""
    found = []
    for number in numbers:
        if number.table == 2:
            key = (number.system, number.metric, number.category)
            parts = [
                part
                for part in numbers
                if part.table == 1
                and (part.system, part.metric, part.category) == key
                and part.backbone != "gpt4o_mini"
            ]
            found.append(_mean(number, parts, f"Table 1, plain mean over {len(parts)} backbones"))
    return found


def _mean(number: PrintedNumber, parts: Sequence[PrintedNumber], rule: str) -> Recomputed:
    value = fsum(part.value for part in parts) / len(parts)
    hidden = fsum(part.half_unit for part in parts) / len(parts)
    return Recomputed(number, value, number.half_unit + hidden, rule)


def repetitions(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Cells that a paper prints in two tables with different values; the later is held against the earlier."""
    cells: dict[tuple[object, ...], list[PrintedNumber]] = {}
    for number in numbers:
        if number.table != TEXT and number.metric not in ("hyperparameter", "cluster_notes", "failures"):
            cells.setdefault((*_cell(number), number.category), []).append(number)
    found: dict[PrintedNumber, Recomputed] = {}
    for same in cells.values():
        for earlier, later in combinations(same, 2):
            entry = Recomputed(later, earlier.value, 0.0, f"the same cell of Table {earlier.table}")
            if earlier.table != later.table and not entry.follows:
                found.setdefault(later, entry)
    return list(found.values())


def totals(paper: str, numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Recompute the sums, shares and ratios inside the paper's tables."""
    return [entry for rule in _TOTALS.get(paper, ()) for entry in rule(numbers)]


Rule = Callable[[Sequence[PrintedNumber]], list[Recomputed]]


def _sum_of_column(table: int, metric: str, total: str) -> Rule:
    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        column = [number for number in numbers if number.table == table and number.metric == metric]
        value = fsum(number.value for number in column if number.row != total)
        return [Recomputed(number, value, 0.0, "sum of its column") for number in column if number.row == total]

    return check


def _percent_of_column(table: int, count: str, share: str, total: str) -> Rule:
    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        counts = {number.row: number.value for number in numbers if number.table == table and number.metric == count}
        return [
            Recomputed(number, 100 * counts[number.row] / counts[total], number.half_unit, "share of the total")
            for number in numbers
            if number.table == table and number.metric == share
        ]

    return check


def _of_row(table: int, metric: str, parts: Sequence[str], combine: Callable[..., float], rule: str) -> Rule:
    """Recompute a cell from other cells of its row; the tolerance is what rounding of each part can move."""

    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        rows: dict[tuple[str, str], dict[str, PrintedNumber]] = {}
        for number in numbers:
            if number.table == table:
                rows.setdefault((number.backbone, number.row), {})[number.metric] = number
        found = []
        for row in rows.values():
            if metric in row:
                values = [row[part].value for part in parts]
                spread = [
                    abs(combine(*[*values[:i], values[i] + row[part].half_unit, *values[i + 1 :]]) - combine(*values))
                    for i, part in enumerate(parts)
                    if not row[part].text.isdigit()
                ]
                found.append(Recomputed(row[metric], combine(*values), row[metric].half_unit + fsum(spread), rule))
        return found

    return check


_TOTALS: Mapping[str, Sequence[Rule]] = {
    "clag": (_sum_of_column(14, "failures", "Total"), _percent_of_column(14, "failures", "failure_percent", "Total")),
    "memfly": (
        _sum_of_column(4, "questions", "Total"),
        _percent_of_column(4, "questions", "questions_share", "Total"),
    ),
    "xmemory": (
        _of_row(8, "facts_per_theme", ("facts", "themes"), lambda facts, themes: facts / themes, "facts over themes"),
    ),
    "sage": (
        _of_row(
            4,
            "add_tokens",
            ("add_prompt_tokens", "add_completion_tokens"),
            lambda a, b: a + b,
            "prompt and completion tokens",
        ),
        _of_row(4, "total_minutes", ("add_minutes", "search_minutes"), lambda a, b: a + b, "adding and searching"),
    ),
}
