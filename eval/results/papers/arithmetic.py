"""Arithmetic on printed numbers: averages, sums, shares and repetitions, recomputed from their printed parts.

A number *follows* when rounding of the number and of its parts explains the difference. Nothing is measured here. Which
numbers of a paper follow from which others is in ``eval/results/papers/<paper>/printed_numbers.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from eval.metrics.registry import METRICS
from eval.results.papers.printed import JUDGE, TEXT, PrintedNumber

#: Metrics of numbers that share their cell's names without being the same number.
NOT_REPEATED = ("hyperparameter", "cluster_notes", "failures")
#: Float noise, far below any printed digit.
_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A printed number and the value that its parts give.

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


#: Recomputes what it knows of among a paper's printed numbers.
Rule = Callable[[Sequence[PrintedNumber]], list[Recomputed]]


def weighted_mean(overall: int, weights: Mapping[int, int], rule: str, parts: int = 0) -> Rule:
    """Recompute overall values from their categories.

    Args:
        overall: table of the overall values.
        weights: of the categories.
        rule: how, in words.
        parts: table of the categories' values; 0 is the same table.
    """

    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        return list(_by_category(numbers, overall, parts or overall, weights, rule))

    return check


def by_questions(overall: int, weights: Mapping[int, int], parts: int = 0) -> Rule:
    """Recompute overall values from categories weighted by their questions; see :func:`weighted_mean`."""
    where = f"categories of Table {parts}" if parts else "its categories"
    return weighted_mean(overall, weights, f"{where}, weighted by their questions", parts)


def _is_score(metric: str) -> bool:
    return metric in METRICS or metric == JUDGE


def _by_category(
    numbers: Sequence[PrintedNumber], overall: int, parts_table: int, weights: Mapping[int, int], rule: str
) -> Iterable[Recomputed]:
    parts = {
        (_cell(number), number.category): number
        for number in numbers
        if number.table == parts_table and number.category is not None
    }
    total = sum(weights.values())
    for number in numbers:
        if number.table == overall and number.category is None and _is_score(number.metric):
            found = {category: parts.get((_cell(number), category)) for category in weights}
            known = {category: part for category, part in found.items() if part is not None}
            if len(known) == len(weights):
                value = fsum(weights[category] * part.value for category, part in known.items()) / total
                hidden = fsum(weights[category] * part.half_unit for category, part in known.items()) / total
                yield Recomputed(number, value, hidden + number.half_unit, rule)


def _cell(number: PrintedNumber) -> tuple[str, ...]:
    return number.dataset, number.backbone, number.system, number.metric


def plain_mean(number: PrintedNumber, parts: Sequence[PrintedNumber], rule: str) -> Recomputed:
    """Recompute one number as the plain mean of others."""
    value = fsum(part.value for part in parts) / len(parts)
    hidden = fsum(part.half_unit for part in parts) / len(parts)
    return Recomputed(number, value, number.half_unit + hidden, rule)


def repetitions(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Return the cells that a paper prints in two tables with different values."""
    cells: dict[tuple[object, ...], list[PrintedNumber]] = {}
    for number in numbers:
        if number.table != TEXT and number.metric not in NOT_REPEATED:
            cells.setdefault((*_cell(number), number.category), []).append(number)
    found: dict[PrintedNumber, Recomputed] = {}
    for same in cells.values():
        for earlier, later in combinations(same, 2):
            entry = Recomputed(later, earlier.value, 0.0, f"the same cell of Table {earlier.table}")
            if earlier.table != later.table and not entry.follows:
                found.setdefault(later, entry)
    return list(found.values())


def sum_of_column(table: int, metric: str, total: str) -> Rule:
    """Recompute the row ``total`` of a column as the sum of its other rows."""

    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        column = [number for number in numbers if number.table == table and number.metric == metric]
        value = fsum(number.value for number in column if number.row != total)
        return [Recomputed(number, value, 0.0, "sum of its column") for number in column if number.row == total]

    return check


def percent_of_column(table: int, count: str, share: str, total: str) -> Rule:
    """Recompute shares (percent) from counts and the count of the row ``total``."""

    def check(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
        counts = {number.row: number.value for number in numbers if number.table == table and number.metric == count}
        return [
            Recomputed(number, 100 * counts[number.row] / counts[total], number.half_unit, "share of the total")
            for number in numbers
            if number.table == table and number.metric == share
        ]

    return check


def of_row(table: int, metric: str, parts: Sequence[str], combine: Callable[..., float], rule: str) -> Rule:
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
