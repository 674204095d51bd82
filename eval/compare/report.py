"""Showing a comparison: on the terminal, and as Markdown, CSV, LaTeX and a plot."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.compare.pairs import Pair, compare_with_first
from eval.compare.rows import (
    ANSWER_COLUMNS,
    COLUMNS,
    COST_COLUMNS,
    EVIDENCE_COLUMNS,
    Column,
    Estimate,
    SystemRow,
    lead_metric,
    system_rows,
)
from eval.figures import Point, Series, Wording, plot_comparison
from eval.files import write_atomic
from eval.metrics.locomo import ADVERSARIAL
from eval.protocols import Protocol, load_protocol
from eval.tables.latex import escape
from eval.tables.stored import Skipped, StoredRun, read_run
from eval.terminal import console
from memsys.errors import RunDirectoryError

if TYPE_CHECKING:
    from rich.table import Table

BY_QUESTION = "‡"

_CATEGORY_5 = {
    "paper_trap": "category 5 scored against the false answer, so that being fooled counts as right",
    "abstain": "category 5 right when the question is declined",
    "exclude": "category 5 left out",
}


@dataclass(frozen=True, slots=True)
class Report:
    """All that a comparison shows."""

    protocol: Protocol
    rows: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]

    @property
    def legend(self) -> list[str]:
        """What the columns mean."""
        by_question = any(
            estimate.interval is not None and estimate.interval.by == "question"
            for row in self.rows
            for estimate in row.estimates.values()
        )
        answered = any(not row.run.retrieval_only for row in self.rows)
        lines = [f"protocol {self.protocol.name}"]
        if answered:
            lines[0] += f": {_CATEGORY_5[self.protocol.adversarial]}"
        lines.append("[low, high]: 95 % percentile bootstrap over conversations")
        if by_question:
            lines.append(f"{BY_QUESTION} one conversation: the interval resamples its questions, not conversations")
        return lines


def compare(run_dirs: Sequence[Path], out_dir: Path, protocol: str | None = None) -> list[Path]:
    """Print a comparison of runs and write ``compare.md``, ``.csv``, ``.tex``, ``.svg`` and ``.png``.

    Args:
        run_dirs: run directories or exported summaries; the first is what the others are tested against. Runs that are
            not complete or not scored are named and left out.
        out_dir: folder of the files.
        protocol: name of the protocol; ``None`` takes the runs' own.

    Returns:
        The files written.

    Raises:
        RunDirectoryError: no run can be shown, or a file is broken.
        ConfigError: unknown protocol.
    """
    runs = _readable(run_dirs)
    report = make_report(runs, load_protocol(protocol or _own_protocol(runs)))
    show(report)
    paths = []
    for suffix, render in (("md", render_markdown), ("csv", render_csv), ("tex", render_latex)):
        paths.append(out_dir / f"compare.{suffix}")
        write_atomic(paths[-1], render(report).encode())
    paths += plot(report, out_dir / "compare")
    written = f"written: {out_dir}/compare.{{md,csv,tex,svg,png}}"
    console().print(written, highlight=False, markup=False, soft_wrap=True)
    return paths


def _readable(run_dirs: Sequence[Path]) -> list[StoredRun]:
    runs, reasons = [], []
    for path in dict.fromkeys(run_dirs):
        run = read_run(path)
        if isinstance(run, Skipped):
            reasons.append(f"{path}: {run.reason}")
        else:
            runs.append(run)
    if not runs:
        raise RunDirectoryError("nothing to compare: " + ("; ".join(reasons) or "no run directory was named"))
    for reason in reasons:
        console().print(f"left out: {reason}", style="yellow", highlight=False, markup=False)
    return runs


def _own_protocol(runs: Sequence[StoredRun]) -> str:
    names = {str((run.record["config"].get("protocol") or {}).get("name")) for run in runs}
    if len(names) > 1:
        raise RunDirectoryError(
            f"the runs have different protocols ({', '.join(sorted(names))}); choose with --protocol"
        )
    return names.pop()


def make_report(runs: Sequence[StoredRun], protocol: Protocol) -> Report:
    """Compute everything that is shown."""
    rows = system_rows(runs, protocol)
    return Report(protocol, tuple(rows), tuple(compare_with_first(rows, protocol)))


def cell(estimate: Estimate | None, column: Column) -> str:
    """Rounded mean; empty where there is none."""
    return "" if estimate is None else f"{estimate.value:.{column.digits}f}"


def interval_text(estimate: Estimate | None) -> str:
    """``[low, high]`` with the mark of an interval over questions."""
    if estimate is None or estimate.interval is None:
        return ""
    mark = BY_QUESTION if estimate.interval.by == "question" else ""
    return f"[{estimate.interval.low:.1f}, {estimate.interval.high:.1f}]{mark}"


def shown_columns(report: Report, columns: Sequence[Column]) -> list[Column]:
    """Columns that at least one run fills."""
    return [column for column in columns if any(column.name in row.estimates for row in report.rows)]


_PAIR_HEADINGS = ("system", "against", "metric", "n", "diff", "95 %", "p (Holm)", "win/tie/loss", "detect")


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """One line of the paired tests."""
    result = pair.result
    interval = "" if result.interval is None else f"[{result.interval.low:+.1f}, {result.interval.high:+.1f}]"
    if result.interval is not None and result.interval.by == "question":
        interval += BY_QUESTION
    return (
        pair.system,
        pair.baseline,
        pair.column,
        str(result.questions),
        f"{result.difference:+.1f}",
        interval,
        "" if pair.adjusted is None else p_text(pair.adjusted),
        f"{result.wins}/{result.ties}/{result.losses}",
        "" if result.detectable is None else f"{result.detectable:.1f}",
    )


def p_text(p_value: float) -> str:
    """Three decimals, never a zero."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def show(report: Report) -> None:
    """Print the comparison."""
    names = short_names(report)
    for name, row in zip(names, report.rows, strict=True):
        if name != row.label:
            console().print(f"{name}: {row.label}", highlight=False, markup=False)
    for title, columns in _TERMINAL_TABLES:
        shown = shown_columns(report, columns)
        if shown:
            console().print(_terminal_table(report, names, title, shown))
    if report.pairs:
        console().print(_pair_table(report, names))
    for line in report.legend:
        console().print(line, style="dim", highlight=False, markup=False)


_TERMINAL_TABLES = (("Answers", ANSWER_COLUMNS), ("Evidence", EVIDENCE_COLUMNS), ("Cost", COST_COLUMNS))
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
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
        if column.name in _WITH_INTERVAL:
            table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    for name, row in zip(names, report.rows, strict=True):
        cells = []
        for column in columns:
            estimate = row.estimates.get(column.name)
            cells.append(cell(estimate, column))
            if column.name in _WITH_INTERVAL:
                cells.append(interval_text(estimate))
        table.add_row(_plain(name), str(row.questions), *map(_plain, cells))
    return table


def _pair_table(report: Report, names: Sequence[str]) -> "Table":
    short = {row.label: name for row, name in zip(report.rows, names, strict=True)}
    table = _bare_table(f"Against {short[report.pairs[0].baseline]}, on the same questions")
    table.add_column("system", no_wrap=True)
    for heading in _PAIR_HEADINGS[2:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for pair in report.pairs:
        table.add_row(_plain(short[pair.system]), *map(_plain, pair_cells(pair)[2:]))
    return table


def _bare_table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _plain(text: str) -> str:
    """Keep brackets from being read as markup."""
    return text.replace("[", "\\[")


def render_markdown(report: Report) -> str:
    """Return the comparison as Markdown."""
    columns = shown_columns(report, COLUMNS)
    parts = ["# Comparison", "", *_markdown_table(["system", "n", *(column.name for column in columns)], _rows(report))]
    parts += ["", *(f"- {line}" for line in report.legend)]
    parts += [f"- {column.name}: {column.meaning}" for column in columns]
    if report.pairs:
        lines = [pair_cells(pair) for pair in report.pairs]
        parts += ["", "## Paired tests", "", *_markdown_table(_PAIR_HEADINGS, lines), "", *(f"- {t}" for t in _PAIRS)]
    parts += ["", "## Runs", "", *(f"- {row.label}: `{row.run.run_id}`" for row in report.rows)]
    lead = lead_metric([row.run for row in report.rows], report.protocol)[0]
    parts += ["", f"![{lead} by category, and {lead} against cost](compare.svg)"]
    return "\n".join(parts) + "\n"


_PAIRS = (
    "diff: system minus baseline on the questions that both were scored on, percentage points",
    "p: two-sided paired randomisation test over conversations (over questions with one conversation), Holm's "
    "correction over the tests of one metric",
    "detect: smallest true difference found with 80 % power at level 5 %",
)


def _rows(report: Report) -> list[list[str]]:
    columns = shown_columns(report, COLUMNS)
    return [
        [row.label, str(row.questions), *(_with_interval(row.estimates.get(column.name), column) for column in columns)]
        for row in report.rows
    ]


def _with_interval(estimate: Estimate | None, column: Column) -> str:
    return f"{cell(estimate, column)} {interval_text(estimate)}".strip()


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    align = ["---", *("---:" for _ in headings[1:])]
    return [f"| {' | '.join(text.replace('|', '/') for text in row)} |" for row in (headings, align, *rows)]


def render_latex(report: Report) -> str:
    """Return the comparison as a LaTeX table (booktabs, graphicx)."""
    columns = shown_columns(report, COLUMNS)
    headings = ["System", "n", *(column.name for column in columns)]
    body = [" & ".join(map(escape, row)) + r" \\" for row in (headings, *_rows(report))]
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * (len(columns) + 1)}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{escape('; '.join(report.legend))}.}}",
            r"\end{table*}",
            "",
        ]
    )


def render_csv(report: Report) -> str:
    """Return one row per run with every column and its interval, unrounded to the eye."""
    names = [column.name for column in COLUMNS]
    intervals = [f"{name} {end}" for name in names for end in ("low", "high")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["system", "run", "protocol", "n", "interval_by", *names, *intervals])
    for row in report.rows:
        found = [row.estimates.get(name) for name in names]
        by = {estimate.interval.by for estimate in found if estimate is not None and estimate.interval is not None}
        values = ["" if estimate is None else f"{estimate.value:.4f}" for estimate in found]
        ends = [end for estimate in found for end in _ends(estimate)]
        writer.writerow(
            [row.label, row.run.run_id, report.protocol.name, row.questions, "".join(sorted(by)), *values, *ends]
        )
    return text.getvalue()


def _ends(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None or estimate.interval is None:
        return "", ""
    return f"{estimate.interval.low:.4f}", f"{estimate.interval.high:.4f}"


def plot(report: Report, out: Path) -> list[Path]:
    """Draw the comparison."""
    column, _ = lead_metric([row.run for row in report.rows], report.protocol)
    cost = "tokens" if any("tokens" in row.estimates for row in report.rows) else "context"
    fooled = column == "F1" and report.protocol.adversarial == "paper_trap"
    series = [
        Series(
            label=row.label,
            groups={_category(name, report.protocol, fooled): _point(value) for name, value in row.by_category.items()},
            overall=_point(row.estimates[column]) if column in row.estimates else None,
            cost=row.estimates[cost].value if cost in row.estimates else None,
        )
        for row in report.rows
        if row.by_category
    ]
    meaning = next(entry.meaning for entry in COLUMNS if entry.name == cost)
    return plot_comparison(series, Wording(column, meaning, f"{report.legend[0]}\n{_bars(report)}"), out)


def _category(category: int, protocol: Protocol, fooled: bool) -> str:
    label = protocol.labels[category].replace("-", "-\n")
    return f"{label}\n(fooled)" if fooled and category == ADVERSARIAL else label


def _bars(report: Report) -> str:
    kinds = {point.interval.by for row in report.rows for point in row.by_category.values() if point.interval}
    over = {"conversation": "over conversations", "question": "over questions, where there is one conversation"}
    return f"bars: 95 % percentile bootstrap {' or '.join(over[kind] for kind in sorted(kinds))}" if kinds else ""


def _point(estimate: Estimate) -> Point:
    if estimate.interval is None:
        return Point(estimate.value, estimate.value, estimate.value)
    return Point(estimate.value, estimate.interval.low, estimate.interval.high)
