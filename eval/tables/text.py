"""The words and figures of a table, the same for every format. Rounding happens here and nowhere before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval.tables.measure import Measured
from eval.tables.model import Cell, Column, Row, Table

DIGITS = 2
#: Behind a measured value: not to be compared with the printed one; interval over the questions of one conversation.
NOT_COMPARED, BY_QUESTION = "†", "‡"
#: Behind a difference: the printed number lies outside the measured interval.
OUTSIDE = "*"

LEGEND = (
    "measured: mean with its 95 % interval, percentile bootstrap over conversations",
    f"{BY_QUESTION} only one conversation: the interval resamples its questions and says nothing about others",
    f"{NOT_COMPARED} not comparable with the printed number; the last column says why",
    f"difference: measured minus printed; {OUTSIDE} the printed number lies outside the measured interval",
    "an empty cell was not measured; the last column says why",
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: ``kind`` is printed, measured or difference."""

    kind: str
    cells: tuple[str, ...]
    remark: str = ""


def lines(row: Row, columns: Sequence[Column], datasets: dict[str, str]) -> list[Line]:
    """Return the lines of one row.

    Args:
        row: the row.
        columns: of the table.
        datasets: labels of the data sets.
    """
    found = []
    if row.printed:
        found.append(Line("printed", tuple(cell.printed.text if cell.printed else "" for cell in row.cells)))
    found.append(Line("measured", tuple(measured_text(cell) for cell in row.cells), coverage(row, columns, datasets)))
    if any(cell.difference is not None for cell in row.cells):
        found.append(Line("difference", tuple(difference_text(cell) for cell in row.cells)))
    return found


def number(value: float) -> str:
    """Round for the table."""
    return f"{value:.{DIGITS}f}"


def measured_text(cell: Cell) -> str:
    """``12.34 [11.11, 13.57]`` with marks; empty where nothing was measured."""
    if cell.measured is None:
        return ""
    interval = cell.measured.interval
    marks = NOT_COMPARED if cell.printed is not None and cell.measured.caveats else ""
    if interval is None:
        return number(cell.measured.value) + marks
    marks += BY_QUESTION if interval.by == "question" else ""
    return f"{number(cell.measured.value)} [{number(interval.low)}, {number(interval.high)}]{marks}"


def difference_text(cell: Cell) -> str:
    """Signed difference; empty where the numbers may not be compared."""
    if cell.difference is None:
        return ""
    return f"{cell.difference:+.{DIGITS}f}" + (OUTSIDE if cell.inside is False else "")


def coverage(row: Row, columns: Sequence[Column], datasets: dict[str, str]) -> str:
    """What the measured values of a row rest on, and why others are missing, data set by data set."""
    wanted = [cell.dataset for cell in row.cells if row.printed or cell.measured is not None]
    parts = []
    for dataset in dict.fromkeys(wanted):
        cells = [(column, cell) for column, cell in zip(columns, row.cells, strict=True) if cell.dataset == dataset]
        texts = _measured_coverage([cell.measured for _, cell in cells if cell.measured]) + _missing(cells)
        parts.append(f"{datasets[dataset]}: {', '.join(texts)}")
    return "; ".join(_shared(parts))


def _measured_coverage(found: Sequence[Measured]) -> list[str]:
    if not found:
        return []
    counts = sorted({measured.questions for measured in found})
    texts = [f"n={counts[0]}" if len(counts) == 1 else f"n={counts[0]}-{counts[-1]}"]
    texts += dict.fromkeys(caveat for measured in found for caveat in measured.caveats)
    seeds = max(len(measured.seeds) for measured in found)
    return [*texts, f"mean of {seeds} seeds"] if seeds > 1 else texts


def _missing(cells: Iterable[tuple[Column, Cell]]) -> list[str]:
    cells = list(cells)
    reasons: dict[str, list[str]] = {}
    for column, cell in cells:
        if cell.measured is None:
            reasons.setdefault(cell.missing, []).append(column.label)
    if len(reasons) == 1 and len(next(iter(reasons.values()))) == len(cells):
        return list(reasons)
    return [f"{' and '.join(labels)} {reason}" for reason, labels in reasons.items()]


def _shared(parts: Sequence[str]) -> list[str]:
    """Say once what holds for all data sets."""
    texts = {part.partition(": ")[2] for part in parts}
    return [*texts] if len(texts) == 1 and len(parts) > 1 else list(parts)


def remarks(table: Table) -> list[str]:
    """Known faults of the printed numbers; cells that share one are listed together."""
    shared: dict[str, list[str]] = {}
    for block, row, column, cell in table.cells:
        if cell.printed is not None and cell.printed.note:
            where = f"{block.label}, {row.label}, {column.label} ({cell.printed.text})"
            shared.setdefault(cell.printed.note, []).append(where)
    return [f"{'; '.join(where)}: {note}" for note, where in shared.items()]


def run_ids(table: Table) -> list[str]:
    """Runs behind the measured values, sorted."""
    return sorted({run for _, _, _, cell in table.cells if cell.measured for run in cell.measured.runs})


def dataset_labels(table: Table) -> dict[str, str]:
    """Labels of the data sets by name."""
    return {name: dataset.label for name, dataset in table.paper.datasets.items()}


def title(table: Table) -> str:
    """Heading of a table."""
    return f"{table.paper.label} Table {table.number}: {table.spec.title}"
