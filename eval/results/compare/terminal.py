"""A comparison on the terminal, in as many tables as the window needs."""

from collections.abc import Sequence

from eval.commands.terminal import console
from eval.commands.terminal_tables import Column as Shown
from eval.commands.terminal_tables import show_folded
from eval.results.compare.columns import (
    AUDITED_COLUMNS,
    COST_COLUMNS,
    UNANSWERED_COLUMNS,
    ComparisonColumn,
    answer_columns,
    evidence_columns,
    session_columns,
)
from eval.results.compare.model import Report, cell, interval_text, seeds_text, shown_columns, spread_text
from eval.results.tables.text import PAIR_HEADINGS, pair_cells


def _terminal_tables(report: Report) -> tuple[tuple[str, Sequence[ComparisonColumn]], ...]:
    return (
        ("Answers", (*report.lead_columns, *answer_columns(), *UNANSWERED_COLUMNS)),
        ("Evidence by turn ids", evidence_columns()),
        ("Evidence by session", session_columns()),
        ("Without doubtful gold, evidence by turn ids", AUDITED_COLUMNS),
        ("Cost", COST_COLUMNS),
    )


#: Columns whose interval has room on a terminal; the files have them all.
_WITH_INTERVAL = ("F1", "R@10")
#: Longest name of a system that fits beside its figures on a terminal of 80 columns.
_LONGEST = 18


def show(report: Report) -> None:
    """Print the comparison."""
    names = short_names(report)
    for name, row in zip(names, report.rows, strict=True):
        if name != row.label:
            console().print(f"{name}: {row.label}", highlight=False, markup=False)
    for title, columns in (*_terminal_tables(report), ("Judges", report.judges)):
        shown = shown_columns(report, columns)
        if shown:
            show_folded(title, _keys(report, names), [each for column in shown for each in _shown(report, column)])
    for line in report.warnings:
        console().print(line, style="yellow", highlight=False, markup=False)
    if report.unlabelled:
        _show_unlabelled(report, names)
    if report.pairs:
        _show_pairs(report, names)
    for line in (*report.legend, *(f"{column.name}: {column.meaning}" for column in report.judges)):
        console().print(line, style="dim", highlight=False, markup=False)


def short_names(report: Report) -> list[str]:
    """Names that fit a terminal: the labels, and a number with the memory's name for a label that is too long."""
    return [
        row.label if len(row.label) <= _LONGEST else f"{number} {row.run.memory}"[:_LONGEST]
        for number, row in enumerate(report.rows, start=1)
    ]


def _keys(report: Report, names: Sequence[str]) -> list[Shown]:
    keys = [Shown("system", names, "left"), Shown("n", [str(row.questions) for row in report.rows])]
    if any(len(row.repeats.runs) > 1 for row in report.rows):
        keys.append(Shown("seeds", [seeds_text(row) for row in report.rows]))
    return keys


def _shown(report: Report, column: ComparisonColumn) -> list[Shown]:
    """A column, and beside it its interval and its spread over seeds where it is one of the headline's."""
    found = [row.estimates.get(column.name) for row in report.rows]
    shown = [Shown(column.name, [cell(estimate, column) for estimate in found])]
    if column.name in (*_WITH_INTERVAL, report.lead) or column in report.judges:
        shown.append(Shown("95 %", [interval_text(estimate) for estimate in found], together=True, style="dim"))
        if any(map(spread_text, found)):
            shown.append(Shown("sd", [spread_text(estimate) for estimate in found], together=True))
    return shown


def _show_unlabelled(report: Report, names: Sequence[str]) -> None:
    """The lead metric in each category whose kind the protocol has no label for."""
    kinds = {score.category: score.kind for row in report.rows for score in row.run.rows}
    columns = []
    for category in sorted(number for number, kind in kinds.items() if kind in report.unlabelled):
        found = [row.by_category.get(category) for row in report.rows]
        counts = [sum(score.category == category for score in row.run.rows) for row in report.rows]
        values = ["" if estimate is None else f"{estimate.value:.1f}" for estimate in found]
        columns += [
            Shown(report.protocol.label(kinds[category]), values),
            Shown("n", list(map(str, counts)), together=True),
        ]
    show_folded(f"{report.lead} of kinds that the protocol has no label for", [Shown("system", names, "left")], columns)


def _show_pairs(report: Report, names: Sequence[str]) -> None:
    short = {row.label: name for row, name in zip(report.rows, names, strict=True)}
    lines = [pair_cells(pair) for pair in report.pairs]
    differ = any(pair.differing for pair in report.pairs)  # a column with room only where it says something
    end = len(PAIR_HEADINGS) if differ else len(PAIR_HEADINGS) - 1
    keys = [Shown("system", [short[pair.system] for pair in report.pairs], "left")]
    keys.append(Shown("metric", [pair.column for pair in report.pairs], "left"))
    shown = [
        Shown(PAIR_HEADINGS[place], [line[place] for line in lines], together=PAIR_HEADINGS[place] == "95 %")
        for place in range(3, end)
    ]
    show_folded(f"Against {short[report.baseline]}, on the same questions", keys, shown)
    for line in report.pair_notes if differ else report.pair_notes[:-1]:
        console().print(line, style="dim", highlight=False, markup=False)
    console().print(
        f"against: the baseline is {report.baseline}; --against NAME takes another", style="dim", highlight=False,
        markup=False,
    )  # fmt: skip
