"""The papers' printed numbers as data: ``results/printed/<paper>.csv``, one row per number.

Values are kept as printed (``12.9`` stays ``12.9``), so that a table shows the paper's own digits. What is known to be
wrong with a number stands in its ``note``.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from memsys.errors import DataError

PRINTED = Path(__file__).resolve().parents[1] / "results" / "printed"

MARKS = ("", "bold", "underline")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """One number of one paper.

    Attributes:
        paper: short name, e.g. ``clag``.
        table: number of the table.
        row: row label as printed.
        column: column label as printed, its group first.
        dataset: the harness's name of the data set; empty where the number belongs to none.
        backbone: the harness's name of the backbone (``conf/backbone``).
        system: the harness's name of the system (``conf/memory``).
        protocol: how the mean was taken (``conf/protocol``); empty where it is no mean of scores.
        metric: the harness's name of the metric.
        category: question category, ``None`` for all of them.
        text: the number as printed, without thousands separators.
        marks: ``bold`` (best), ``underline`` (second best) or empty.
        note: what is known to be wrong or unclear.
    """

    paper: str
    table: int
    row: str
    column: str
    dataset: str
    backbone: str
    system: str
    protocol: str
    metric: str
    category: int | None
    text: str
    marks: str
    note: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)


_COLUMNS = tuple("value" if field.name == "text" else field.name for field in fields(PrintedNumber))


def load_printed(paper: str, folder: Path = PRINTED) -> tuple[PrintedNumber, ...]:
    """Read the printed numbers of one paper, in the order of its tables.

    Raises:
        DataError: there is no such paper, or a row is malformed or repeated.
    """
    path = folder / f"{paper}.csv"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.csv"))) or "none"
        raise DataError(f"{path} does not exist; papers with printed numbers: {known}")
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise DataError(f"{path}:1 must have the columns {','.join(_COLUMNS)}")
        numbers = tuple(_number(row, path, reader.line_num) for row in reader)
    _check_unique(numbers, path)
    return numbers


def _number(row: Mapping[str, str], path: Path, line: int) -> PrintedNumber:
    where = f"{path}:{line}"
    if None in row or None in row.values():
        raise DataError(f"{where} has another number of fields than the header")
    if row["marks"] not in MARKS:
        raise DataError(f"{where}: marks is {row['marks']!r}; use bold, underline or nothing")
    try:
        float(row["value"])
        table, category = int(row["table"]), int(row["category"]) if row["category"] else None
    except ValueError as error:
        raise DataError(f"{where}: {error}; table, category and value are numbers") from error
    rest = {name: row[name] for name in _COLUMNS if name not in ("table", "category", "value")}
    return PrintedNumber(**rest, table=table, category=category, text=row["value"])


def _check_unique(numbers: Iterable[PrintedNumber], path: Path) -> None:
    seen = set()
    for number in numbers:
        key = (number.table, number.backbone, number.dataset, number.row, number.column)
        if key in seen:
            raise DataError(f"{path}: table {number.table}, row {number.row!r}, column {number.column!r} occurs twice")
        seen.add(key)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A printed overall value that does not follow from the printed category values."""

    overall: PrintedNumber
    recomputed: float


def recompute_overall(
    numbers: Sequence[PrintedNumber], weights: Mapping[int, int], tables: tuple[int, int], tolerance: float
) -> tuple[Mismatch, ...]:
    """Weigh printed category values by question counts and compare with the printed overall values.

    Args:
        numbers: the printed numbers of one paper.
        weights: questions per category.
        tables: the table of overall values and the table of category values.
        tolerance: largest difference that rounding of the parts explains.

    Returns:
        The overall values that do not follow. Overall values without category values are left out.
    """
    overall, parts = tables
    found = []
    for number in numbers:
        if number.table != overall:
            continue
        values = {
            part.category: part.value
            for part in numbers
            if part.table == parts and part.category is not None and _same_cell(part, number)
        }
        if values and set(values) == set(weights):
            mean = sum(weights[category] * values[category] for category in weights) / sum(weights.values())
            if abs(mean - number.value) > tolerance:
                found.append(Mismatch(number, mean))
    return tuple(found)


def _same_cell(one: PrintedNumber, other: PrintedNumber) -> bool:
    names = ("dataset", "backbone", "system", "metric")
    return all(getattr(one, name) == getattr(other, name) for name in names)
