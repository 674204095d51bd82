"""A comparison as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence

from eval.commands.escaping import csv_row, markdown, markdown_cell, markdown_code, markdown_row
from eval.results.compare.columns import ComparisonColumn
from eval.results.compare.model import Report, cell, interval_text, shown_columns, spread_text
from eval.results.compare.rows import ComparisonEstimate, SystemRow
from eval.results.tables.pairs import Pair
from eval.results.tables.plain import PlainTable
from eval.results.tables.plain_latex import in_one_file, plain_latex
from eval.results.tables.text import PAIR_HEADINGS, pair_cells

#: Columns of each family of paired tests in CSV.
_TEST_COLUMNS = ("difference", "difference low", "difference high", "p", "p error", "p (Holm)", "verdict", "n tested")


def render_markdown(report: Report) -> str:
    """Return the comparison as Markdown."""
    columns = shown_columns(report, report.columns)
    headings = ["system", "n", *(column.heading for column in columns)]
    parts = ["# Comparison", "", *_markdown_table(headings, _rows(report))]
    parts += [text for line in (*report.warnings, report.conclusion) if line for text in ("", markdown(line))]
    parts += ["", *(f"- {markdown(line)}" for line in [*report.legend, *_meanings(columns)])]
    if report.pairs:
        lines = [pair_cells(pair) for pair in report.pairs]
        parts += [
            "",
            "## Paired tests",
            "",
            f"Baseline: {markdown(report.baseline)}",
            "",
            *_markdown_table(PAIR_HEADINGS, lines),
            "",
            *(f"- {t}" for t in report.pair_notes),
        ]
    parts += ["", "## Runs", "", *(f"- {markdown(row.label)}: {_run_ids(row)}" for row in report.rows)]
    lead = report.lead
    parts += ["", f"![{lead} by category, and {lead} against cost](compare.svg)"]
    return "\n".join(parts) + "\n"


def _run_ids(row: SystemRow) -> str:
    return ", ".join(markdown_code(run.run_id) for run in row.repeats.runs)


def _meanings(columns: Sequence[ComparisonColumn]) -> list[str]:
    return [f"{column.heading}: {column.meaning}" for column in columns]


def _rows(report: Report) -> list[list[str]]:
    columns = shown_columns(report, report.columns)
    return [
        [row.label, str(row.questions), *(_with_interval(row.estimates.get(column.name), column) for column in columns)]
        for row in report.rows
    ]


def _with_interval(estimate: ComparisonEstimate | None, column: ComparisonColumn) -> str:
    spread = spread_text(estimate)
    return f"{cell(estimate, column)} {interval_text(estimate)} {f'(sd {spread})' if spread else ''}".strip()


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    align = ["---", *("---:" for _ in headings[1:])]
    return [markdown_row([markdown_cell(text) for text in row]) for row in (headings, align, *rows)]


def render_latex(report: Report) -> str:
    """Return the comparison and its paired tests in LaTeX; see :func:`eval.results.tables.plain_latex.plain_latex`."""
    columns = shown_columns(report, report.columns)
    headings = ("System", "n", *(column.heading for column in columns))
    notes = [*report.legend, *_meanings(columns)]
    found = [plain_latex(PlainTable("Comparison", headings, _rows(report), notes), "comparison")]
    if report.pairs:
        found.append(plain_latex(_paired_tests(report), "comparison-tests"))
    return in_one_file(found)


def _paired_tests(report: Report) -> PlainTable:
    """The paired tests without what the caption says, and without a last column that says nothing."""
    differ = any(pair.differing for pair in report.pairs)
    shown = [place for place, heading in enumerate(PAIR_HEADINGS) if heading != "against"]
    shown = shown if differ else shown[:-1]
    lines = [pair_cells(pair) for pair in report.pairs]
    return PlainTable(
        f"Paired tests against {report.baseline}",
        tuple(PAIR_HEADINGS[place] for place in shown),
        [[line[place] for place in shown] for line in lines],
        report.pair_notes if differ else report.pair_notes[:-1],
        left=2,
    )


def render_csv(report: Report) -> str:
    """Return one row per system: columns, intervals, tests, four decimals (p-values: six); ``run``: its first run."""
    names = [column.name for column in report.columns]
    headings = [column.heading for column in report.columns]
    intervals = [f"{heading} {end}" for heading in headings for end in ("low", "high")]
    spreads = [f"{heading} sd over seeds" for heading in headings]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tested = list(dict.fromkeys(pair.column for pair in report.pairs))
    tests = ["against", *(f"{column} {name}" for column in tested for name in _TEST_COLUMNS)] if tested else []
    names_of_run = ["system", "run", "protocol", "n", "interval_by"]
    writer.writerow(csv_row([*names_of_run, *headings, *intervals, "seeds", *spreads, *tests]))
    for row in report.rows:
        found = [row.estimates.get(name) for name in names]
        by = {estimate.interval.by for estimate in found if estimate is not None and estimate.interval is not None}
        values = ["" if estimate is None else f"{estimate.value:.4f}" for estimate in found]
        ends = [end for estimate in found for end in _ends(estimate)]
        first = [row.label, row.run.run_id, report.protocol.name, row.questions, " and ".join(sorted(by))]
        seeds = " ".join(map(str, row.repeats.seeds))
        deviations = ["" if one is None or one.spread is None else f"{one.spread:.4f}" for one in found]
        writer.writerow(csv_row([*first, *values, *ends, seeds, *deviations, *_tests(report, row, tested)]))
    return text.getvalue()


def _tests(report: Report, row: SystemRow, tested: Sequence[str]) -> list[str]:
    """The paired tests of a system; empty cells for the baseline, and for tests that it is not in."""
    pairs = {pair.column: pair for pair in report.pairs if pair.system == row.label}
    against = [report.baseline if pairs else ""] if tested else []
    return [*against, *(cell for column in tested for cell in _test_cells(pairs.get(column)))]


def _test_cells(pair: Pair | None) -> list[str]:
    if pair is None:
        return [""] * len(_TEST_COLUMNS)
    found, interval = pair.result, pair.result.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    figures = ["" if value is None else f"{value:.4f}" for value in (found.difference, *ends)]
    chances = ["" if value is None else f"{value:.6f}" for value in (found.p_value, found.p_error, pair.adjusted)]
    return [*figures, *chances, pair.verdict, str(found.questions)]


def _ends(estimate: ComparisonEstimate | None) -> tuple[str, str]:
    if estimate is None or estimate.interval is None:
        return "", ""
    return f"{estimate.interval.low:.4f}", f"{estimate.interval.high:.4f}"
