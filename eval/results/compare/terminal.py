"""A comparison on the terminal, in as many tables as the window needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from eval.commands.rendering.table import Cell, Column, Table, table_of
from eval.commands.rendering.terminal import show as show_table
from eval.commands.terminal import console, say
from eval.results.compare.columns import (
    AUDITED_COLUMNS,
    COST_COLUMNS,
    TEXT_RECALL,
    UNANSWERED_COLUMNS,
    ComparisonColumn,
    answer_columns,
    evidence_columns,
    session_columns,
    text_columns,
)
from eval.results.compare.formats import paired_tests
from eval.results.compare.model import Report, cell, interval_text, seeds_text, shown_columns, spread_text

_Shown: TypeAlias = tuple[Column, Sequence[Cell]]


def _terminal_tables(report: Report) -> tuple[tuple[str, Sequence[ComparisonColumn]], ...]:
    return (
        ("Answers", (*report.lead_columns, *answer_columns(), *UNANSWERED_COLUMNS)),
        ("Evidence by turn ids", evidence_columns()),
        ("Evidence by substring", text_columns()),
        ("Evidence by session", session_columns()),
        ("Without doubtful gold, evidence by turn ids", AUDITED_COLUMNS),
        ("Cost", COST_COLUMNS),
    )


#: Longest name of a system that fits next to its figures on a terminal of 80 columns.
_LONGEST = 18


def show(report: Report) -> None:
    """Print the comparison."""
    names = short_names(report)
    for name, row in zip(names, report.rows, strict=True):
        if name != row.label:
            say(f"{name}: {row.label}")
    for table in _tables(report, names):
        show_table(table)
    for line in report.warnings:
        console().print(line, style="yellow", highlight=False, markup=False)
    if report.unlabelled:
        show_table(_unlabelled(report, names))
    if report.pairs:
        show_table(_pairs(report, names))
    for line in (*report.legend, *(f"{column.name}: {column.meaning}" for column in report.judges)):
        console().print(line, style="dim", highlight=False, markup=False)


def short_names(report: Report) -> list[str]:
    """Return names that fit a terminal: the labels, or numbers with the memories' names where a label is long."""
    if all(len(row.label) <= _LONGEST for row in report.rows):
        return [row.label for row in report.rows]
    return [f"{number} {row.run.memory}"[:_LONGEST] for number, row in enumerate(report.rows, start=1)]


def _tables(report: Report, names: Sequence[str]) -> list[Table]:
    """Return a table for each group of columns that some system fills, first the one that is tested."""
    groups = (*_terminal_tables(report), ("Judges", report.judges))
    found = [(title, shown) for title, columns in groups if (shown := shown_columns(report, columns))]
    keys = _keys(report, names)
    return [
        table_of(title, [*keys, *(one for column in _tested_first(report, shown) for one in _shown(report, column))])
        for title, shown in found
    ]


def _tested_first(report: Report, columns: Sequence[ComparisonColumn]) -> list[ComparisonColumn]:
    return sorted(columns, key=lambda column: column.name not in (report.lead, report.recall))


def _keys(report: Report, names: Sequence[str]) -> list[_Shown]:
    keys: list[_Shown] = [_names(names), (Column("n", key=True), [row.questions for row in report.rows])]
    if any(len(row.repeats.runs) > 1 for row in report.rows):
        keys.append((Column("seeds", key=True), [seeds_text(row) for row in report.rows]))
    return keys


def _names(names: Sequence[str]) -> _Shown:
    return Column("system", "left", key=True), names


def _shown(report: Report, column: ComparisonColumn) -> list[_Shown]:
    """Return a column, with interval and spread over seeds where it is a headline's: a terminal has room for few."""
    found = [row.estimates.get(column.name) for row in report.rows]
    shown: list[_Shown] = [(Column(column.name), [cell(estimate, column) for estimate in found])]
    if column.name in ("F1", TEXT_RECALL[0], report.lead, report.recall) or column in report.judges:
        interval = Column("95 %", together=True, style="dim")
        shown.append((interval, [interval_text(estimate) for estimate in found]))
        if any(map(spread_text, found)):
            shown.append((Column("sd", together=True), [spread_text(estimate) for estimate in found]))
    return shown


def _unlabelled(report: Report, names: Sequence[str]) -> Table:
    """Return the lead metric in each category whose kind the protocol has no label for."""
    kinds = {score.category: score.kind for row in report.rows for score in row.run.rows}
    shown = [_names(names)]
    for category in sorted(number for number, kind in kinds.items() if kind in report.unlabelled):
        found = [row.by_category.get(category) for row in report.rows]
        counts = [sum(score.category == category for score in row.run.rows) for row in report.rows]
        values = ["" if estimate is None else estimate.value for estimate in found]
        shown += [
            (Column(report.protocol.label(kinds[category])), values),
            (Column("n", together=True), counts),
        ]
    return table_of(f"{report.lead} of kinds that the protocol has no label for", shown)


def _pairs(report: Report, names: Sequence[str]) -> Table:
    short = {row.label: name for row, name in zip(report.rows, names, strict=True)}
    tests = paired_tests(report)
    named = [[short[pair.system], *cells[1:]] for pair, cells in zip(report.pairs, tests.rows, strict=True)]
    note = f"against: the baseline is {report.baseline}; --against NAME takes another"
    title = f"Against {short[report.baseline]}, on the same questions"
    return replace(tests, title=title, rows=named, notes=[*tests.notes, note])
