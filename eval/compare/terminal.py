"""A comparison on the terminal, within 80 columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval.cli.terminal import console
from eval.compare.model import Report, cell, interval_text, shown_columns
from eval.compare.rows import AUDITED_COLUMNS, COST_COLUMNS, Column, answer_columns, evidence_columns
from eval.tables.text import PAIR_HEADINGS, pair_cells

if TYPE_CHECKING:
    from rich.table import Table


def show(report: Report) -> None:
    """Print the comparison."""
    names = short_names(report)
    for name, row in zip(names, report.rows, strict=True):
        if name != row.label:
            console().print(f"{name}: {row.label}", highlight=False, markup=False)
    for title, columns in (*_terminal_tables(), ("Judges", report.judges)):
        shown = shown_columns(report, columns)
        if shown:
            console().print(_terminal_table(report, names, title, shown))
    if report.pairs:
        console().print(_pair_table(report, names))
    for line in (*report.legend, *(f"{column.name}: {column.meaning}" for column in report.judges)):
        console().print(line, style="dim", highlight=False, markup=False)


def _terminal_tables() -> tuple[tuple[str, Sequence[Column]], ...]:
    return (
        ("Answers", answer_columns()),
        ("Evidence by turn ids", evidence_columns()),
        ("Without doubtful gold, evidence by turn ids", AUDITED_COLUMNS),
        ("Cost", COST_COLUMNS),
    )


#: Columns whose interval has room on a terminal; the files have them all.
_WITH_INTERVAL = ("F1", "R@10")
#: Longest name of a system that fits beside its figures on a terminal of 80 columns.
_LONGEST = 18


def short_names(report: Report) -> list[str]:
    """Names that fit a terminal: the labels, or numbers with the memory's name where a label is too long."""
    if max(len(row.label) for row in report.rows) <= _LONGEST:
        return [row.label for row in report.rows]
    return [f"{number} {row.run.memory}"[:_LONGEST] for number, row in enumerate(report.rows, start=1)]


def _terminal_table(report: Report, names: Sequence[str], title: str, columns: Sequence[Column]) -> "Table":
    table = _bare_table(title)
    table.add_column("system", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    wide = [column for column in columns if column.name in _WITH_INTERVAL or column in report.judges]
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
        if column in wide:
            table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    for name, row in zip(names, report.rows, strict=True):
        cells = []
        for column in columns:
            estimate = row.estimates.get(column.name)
            cells.append(cell(estimate, column))
            if column in wide:
                cells.append(interval_text(estimate))
        table.add_row(name, str(row.questions), *cells)
    return table


def _pair_table(report: Report, names: Sequence[str]) -> "Table":
    short = {row.label: name for row, name in zip(report.rows, names, strict=True)}
    table = _bare_table(f"Against {short[report.pairs[0].baseline]}, on the same questions")
    table.add_column("system", no_wrap=True)
    differ = any(pair.differing for pair in report.pairs)  # a column with room only where it says something
    end = None if differ else -1
    for heading in PAIR_HEADINGS[2:end]:
        table.add_column(heading, justify="right", no_wrap=True)
    for pair in report.pairs:
        table.add_row(short[pair.system], *pair_cells(pair)[2:end])
    return table


def _bare_table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
