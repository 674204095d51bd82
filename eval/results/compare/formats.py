"""A comparison in files: a page of Markdown, LaTeX, and one CSV row a system."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from eval.commands.escaping import markdown, markdown_code
from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.markdown import bullets, page, render_markdown
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Cell, Table, columns, records
from eval.results.compare.columns import ComparisonColumn
from eval.results.compare.model import Report, cell, interval_text, shown_columns, spread_text
from eval.results.compare.rows import ComparisonEstimate, SystemRow
from eval.results.tables.pairs import Pair
from eval.results.tables.text import pair_table

#: Columns of each family of paired tests in CSV.
_TEST_COLUMNS = ("difference", "difference low", "difference high", "p", "p error", "p (Holm)", "verdict", "n tested")


def data_names(reports: Sequence[Report]) -> list[str]:
    """Return the name of each comparison's data set, with its checksum where several have one name."""
    found = Counter(report.data[0] for report in reports)
    return [
        name if found[name] == 1 else f"{name}_{sha256[:8]}" for name, sha256 in (report.data for report in reports)
    ]


def figure_names(reports: Sequence[Report]) -> list[str]:
    """Return the name of each comparison's figure, without its suffix."""
    return ["compare"] if len(reports) == 1 else [f"compare_{name}" for name in data_names(reports)]


def comparison_files(*reports: Report) -> dict[str, str]:
    """Return the name of each file of a comparison -> its text; ``reports``: one of each data set."""
    figures = figure_names(reports)
    titles = ["Comparison"] if len(reports) == 1 else [f"Comparison: {name}" for name in data_names(reports)]
    pages = [comparison_page(*one) for one in zip(reports, titles, figures, strict=True)]
    return {
        "compare.md": "\n".join(pages),
        "compare.csv": render_csv(_stacked([comparison_records(report) for report in reports])),
        "compare.tex": "\n".join(
            render_latex(table) for one in zip(reports, figures, strict=True) for table in _latex_tables(*one)
        ),
    }


def _latex_tables(report: Report, name: str) -> list[Table]:
    label = name.replace("compare", "comparison", 1)
    tests = [replace(paired_tests(report), label=f"{label}-tests")] if report.pairs else []
    return [replace(comparison_table(report), label=label), *tests]


def _stacked(tables: Sequence[Table]) -> Table:
    """Return the rows of all tables below each other, empty in columns that others have."""
    headings = [[column.heading for column in table.columns] for table in tables]
    rows = [dict(zip(own, row, strict=True)) for own, table in zip(headings, tables, strict=True) for row in table.rows]
    return records(list(dict.fromkeys(chain.from_iterable(headings))), rows)


def comparison_page(report: Report, title: str, figure: str) -> str:
    """Return the comparison as Markdown.

    Args:
        report: its content.
        title: of the page.
        figure: name of the figure without its suffix.
    """
    shown, lead = comparison_table(report), report.lead
    return page(
        f"# {title}",
        render_markdown(replace(shown, notes=()), level=0),
        *map(markdown, filter(None, (*report.warnings, report.conclusion))),
        bullets(shown.notes),
        render_markdown(paired_tests(report)) if report.pairs else "",
        "## Runs",
        "\n".join(f"- {markdown(row.label)}: {_run_ids(row)}" for row in report.rows),
        f"![{lead} by category, and {lead} against cost]({figure}.svg)" if report.has_figure else "",
    )


def _run_ids(row: SystemRow) -> str:
    return ", ".join(markdown_code(run.run_id) for run in row.repeats.runs)


def comparison_table(report: Report) -> Table:
    """Return all columns that some system fills, with their intervals."""
    shown = shown_columns(report, report.columns)
    rows: list[list[Cell]] = [
        [row.label, row.questions, *(_with_interval(row.estimates.get(column.name), column) for column in shown)]
        for row in report.rows
    ]
    notes = [*report.legend, *(f"{column.heading}: {column.meaning}" for column in shown)]
    headings = ("system", "n", *(column.heading for column in shown))
    return Table("Comparison", columns(headings), rows, notes, label="comparison")


def _with_interval(estimate: ComparisonEstimate | None, column: ComparisonColumn) -> str:
    spread = spread_text(estimate)
    return f"{cell(estimate, column)} {interval_text(estimate)} {f'(sd {spread})' if spread else ''}".strip()


def paired_tests(report: Report) -> Table:
    """Return the paired tests without what the title says, and without a last column that says nothing."""
    differ = any(pair.differing for pair in report.pairs)
    whole = pair_table(report.pairs, report.pair_notes if differ else report.pair_notes[:-1])
    shown = [
        place
        for place, column in enumerate(whole.columns)
        if column.heading != "against" and (differ or column.heading != "differ in")
    ]
    return replace(whole.of_columns(shown), title=f"Paired tests against {report.baseline}")


def comparison_records(report: Report) -> Table:
    """Return one row per system: columns, intervals, tests, four decimals (p-values: six); ``run``: its first run."""
    names = [column.name for column in report.columns]
    headings = [column.heading for column in report.columns]
    intervals = [f"{heading} {end}" for heading in headings for end in ("low", "high")]
    spreads = [f"{heading} sd over seeds" for heading in headings]
    tested = list(dict.fromkeys(pair.column for pair in report.pairs))
    tests = ["against", *(f"{column} {name}" for column in tested for name in _TEST_COLUMNS)] if tested else []
    shown = columns(
        ("system", "run", "dataset", "protocol", "n", "interval_by", *headings, *intervals, "seeds", *spreads, *tests)
    )
    return Table("", shown, [_record(report, row, names, tested) for row in report.rows])


def _record(report: Report, row: SystemRow, names: Sequence[str], tested: Sequence[str]) -> list[Cell]:
    found = [row.estimates.get(name) for name in names]
    by = {estimate.interval.by for estimate in found if estimate is not None and estimate.interval is not None}
    return [
        *(row.label, row.run.run_id, report.data[0], report.protocol.name, row.questions, " and ".join(sorted(by))),
        *(None if estimate is None else estimate.value for estimate in found),
        *(end for estimate in found for end in _ends(estimate)),
        " ".join(map(str, row.repeats.seeds)),
        *(None if estimate is None else estimate.spread for estimate in found),
        *_tests(report, row, tested),
    ]


def _ends(estimate: ComparisonEstimate | None) -> tuple[float | None, float | None]:
    interval = None if estimate is None else estimate.interval
    return (None, None) if interval is None else (interval.low, interval.high)


def _tests(report: Report, row: SystemRow, tested: Sequence[str]) -> list[Cell]:
    """Return the paired tests of a system; empty cells for the baseline, and for tests that it is not in."""
    pairs = {pair.column: pair for pair in report.pairs if pair.system == row.label}
    against: list[Cell] = [report.baseline if pairs else ""] if tested else []
    return [*against, *(cell for column in tested for cell in _test_cells(pairs.get(column)))]


def _test_cells(pair: Pair | None) -> list[Cell]:
    if pair is None:
        return [None] * len(_TEST_COLUMNS)
    found, interval = pair.result, pair.result.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    chances = [None if value is None else f"{value:.6f}" for value in (found.p_value, found.p_error, pair.adjusted)]
    return [found.difference, *ends, *chances, pair.verdict, found.questions]
