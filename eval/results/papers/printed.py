"""The papers' printed numbers as data: ``results/printed/<paper>.csv``, one row per number.

Values are kept as printed (``12.9`` stays ``12.9``), so that a table shows the paper's own digits. What is known to be
wrong with a number is in its ``note``. What follows from what is checked by :mod:`eval.results.papers.arithmetic`.

``results/printed/<paper>.<version>.csv`` has the numbers of a later version of the paper, in the same columns; the
specification of its tables says which version ``<paper>.csv`` is.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path

from memsys.assets.paths import shipped
from memsys.errors import DataError

PRINTED = shipped("results", "printed")

MARKS = ("", "bold", "underline")
#: Name of the table of numbers that are printed in running text or next to a figure.
TEXT = 0
#: Metric of the numbers that the paper's judge gave, whichever it was.
JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """One number of one paper.

    Attributes:
        paper: short name, e.g. ``clag``.
        table: number of the table; :data:`TEXT` for running text and figures, whose place the column names.
        row: row label as printed.
        column: column label as printed, its group first.
        dataset: the harness's name of the data set; empty where the number belongs to none.
        backbone: the harness's name of the backbone (``conf/backbone``).
        system: the harness's name of the system (``conf/memory``).
        protocol: how the mean was taken (``conf/protocol``); empty where it is not a mean of scores.
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

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: what rounding may hide."""
        return 0.5 * 10.0 ** -len(self.text.partition(".")[2])


_COLUMNS = tuple("value" if field.name == "text" else field.name for field in fields(PrintedNumber))


def papers(folder: Path = PRINTED) -> tuple[str, ...]:
    """Return the names of the papers with printed numbers, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.csv") if "." not in path.stem))


def later_versions(paper: str, folder: Path = PRINTED) -> dict[str, tuple[PrintedNumber, ...]]:
    """Read the numbers that later versions of a paper print, by version, sorted.

    Raises:
        DataError: a file is malformed, or has a number that the version before does not print.
    """
    paths = sorted(folder.glob(f"{paper}.*.csv"))
    before = {place_of(number) for number in load_printed(paper, folder)} if paths else set()
    found = {}
    for path in paths:
        numbers = _read(path)
        if strange := [number for number in numbers if place_of(number) not in before]:
            first = strange[0]
            raise DataError(
                f"{path}: table {first.table}, row {first.row!r}, column {first.column!r} is not in {paper}.csv; give "
                "the number its row and column there, and its backbone and data set"
            )
        found[path.stem.removeprefix(f"{paper}.")] = numbers
    return found


def place_of(number: PrintedNumber) -> tuple[int, str, str, str, str]:
    """Return the place of a number in its paper: table, backbone, data set, row and column."""
    return number.table, number.backbone, number.dataset, number.row, number.column


def load_printed(paper: str, folder: Path = PRINTED) -> tuple[PrintedNumber, ...]:
    """Read the printed numbers of one paper, in the order of its tables.

    Raises:
        DataError: there is no such paper, the file is not a UTF-8 table, or a row is malformed or repeated.
    """
    path = folder / f"{paper}.csv"
    if not path.is_file():
        known = ", ".join(papers(folder)) or "none"
        raise DataError(f"{path} does not exist; papers with printed numbers: {known}")
    return _read(path)


def _read(path: Path) -> tuple[PrintedNumber, ...]:
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle, strict=True)
        try:
            if tuple(reader.fieldnames or ()) != _COLUMNS:
                raise DataError(f"{path}:1 must have the columns {','.join(_COLUMNS)}")
            numbers = tuple(_number(row, path, reader.line_num) for row in reader)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 text ({error.reason}); save the file as UTF-8") from error
        except csv.Error as error:
            raise DataError(f"{path}:{reader.reader.line_num}: {error}; correct the quotes there or above") from error
    _check_unique(numbers, path)
    return numbers


def _number(row: Mapping[str, str], path: Path, line: int) -> PrintedNumber:
    where = f"{path}:{line}"
    if None in row or None in row.values():
        raise DataError(f"{where} has another number of fields than the header")
    if row["marks"] not in MARKS:
        raise DataError(f"{where}: marks is {row['marks']!r}; use bold, underline or nothing")
    try:
        if not isfinite(float(row["value"])):
            raise ValueError(f"value is {row['value']}")
        table, category = int(row["table"]), int(row["category"]) if row["category"] else None
    except ValueError as error:
        raise DataError(f"{where}: {error}; table, category and value are numbers") from error
    rest = {name: row[name] for name in _COLUMNS if name not in ("table", "category", "value")}
    return PrintedNumber(**rest, table=table, category=category, text=row["value"])


def _check_unique(numbers: Iterable[PrintedNumber], path: Path) -> None:
    seen = set()
    for number in numbers:
        key = place_of(number)
        if key in seen:
            raise DataError(f"{path}: table {number.table}, row {number.row!r}, column {number.column!r} occurs twice")
        seen.add(key)
