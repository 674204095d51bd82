"""A comparison as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence

from eval.cli.escaping import csv_row, markdown, markdown_cell, markdown_code, markdown_row
from eval.compare.columns import ComparisonColumn
from eval.compare.model import Report, cell, interval_text, shown_columns, spread_text
from eval.compare.rows import ComparisonEstimate, SystemRow
from eval.tables.plain import PlainTable
from eval.tables.plain_latex import plain_latex
from eval.tables.text import PAIR_HEADINGS, PAIR_LEGEND, pair_cells


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
            *(f"- {t}" for t in PAIR_LEGEND),
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
    """Return the comparison in LaTeX; see :func:`eval.tables.plain_latex.plain_latex`."""
    columns = shown_columns(report, report.columns)
    headings = ("System", "n", *(column.heading for column in columns))
    notes = [*report.legend, *_meanings(columns)]
    return plain_latex(PlainTable("Comparison", headings, _rows(report), notes), "comparison")


def render_csv(report: Report) -> str:
    """Return one row per system with every column and its interval, four decimals; ``run``: its first run."""
    names = [column.name for column in report.columns]
    headings = [column.heading for column in report.columns]
    intervals = [f"{heading} {end}" for heading in headings for end in ("low", "high")]
    spreads = [f"{heading} sd over seeds" for heading in headings]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        csv_row(["system", "run", "protocol", "n", "interval_by", *headings, *intervals, "seeds", *spreads])
    )
    for row in report.rows:
        found = [row.estimates.get(name) for name in names]
        by = {estimate.interval.by for estimate in found if estimate is not None and estimate.interval is not None}
        values = ["" if estimate is None else f"{estimate.value:.4f}" for estimate in found]
        ends = [end for estimate in found for end in _ends(estimate)]
        first = [row.label, row.run.run_id, report.protocol.name, row.questions, " and ".join(sorted(by))]
        seeds = " ".join(map(str, row.repeats.seeds))
        deviations = ["" if one is None or one.spread is None else f"{one.spread:.4f}" for one in found]
        writer.writerow(csv_row([*first, *values, *ends, seeds, *deviations]))
    return text.getvalue()


def _ends(estimate: ComparisonEstimate | None) -> tuple[str, str]:
    if estimate is None or estimate.interval is None:
        return "", ""
    return f"{estimate.interval.low:.4f}", f"{estimate.interval.high:.4f}"
