"""A paper's table in files: its own rows and other measurements as two pages, records as CSV, a short LaTeX form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.markdown import bullets, page, render_markdown, section
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Cell, Column, Span, Style, Table
from eval.results.tables.flat import cell_records
from eval.results.tables.layout import TableLine, lay_out
from eval.results.tables.model import PaperTable, TableCell
from eval.results.tables.text import (
    LEGEND,
    SETTINGS_LEGEND,
    coverage,
    dataset_labels,
    definitions,
    later_texts,
    number,
    pair_table,
    remarks,
    run_ids,
    text_lines,
    title,
)

#: Verdicts as superscripts of a measured value in LaTeX; the note below the table explains them.
_SIGNS = {"reproduced": "R", "not reproduced": "N", "cannot say": "?", "not comparable": "C"}
#: Ends the name of the page of rows that the paper does not print.
_OTHERS = "_others"
_MARKS: Mapping[str, Style] = {"": "", "bold": "bold", "underline": "underline"}
_NOTE = (
    "±: half of the 95 % interval over conversations (cluster t); ‡ one conversation: over its questions, not an "
    "interval for other conversations. Superscripts say whether the printed number reproduces on the same questions "
    "(equivalence test, margin 1 point or the rounding): R reproduced, N not reproduced, ? cannot say, C not "
    "comparable"
)


def file_stem(table: PaperTable) -> str:
    """Return the name of a table's files, without their endings."""
    return f"{table.paper.paper}_table{table.number:02d}"


def paper_files(table: PaperTable) -> dict[str, str]:
    """Return the name of each file of a table -> its text."""
    name = file_stem(table)
    others = _rows(table, printed=False)
    pages = {f"{name}.md": paper_page(table, f"{name}{_OTHERS}.md" if others.blocks else "")}
    if others.blocks:
        pages[f"{name}{_OTHERS}.md"] = _others_page(others, f"{name}.md")
    return {
        **pages,
        f"{name}.csv": render_csv(cell_records(table)),
        f"{name}.tex": render_latex(short_table(table)),
    }


def paper_page(table: PaperTable, others: str = "") -> str:
    """Return the page of the rows that the paper prints, with known faults of the printed numbers, and the runs.

    Args:
        table: with all its rows.
        others: file of the page of all other rows; empty if there are none.
    """
    own = _rows(table, printed=True)
    return page(
        render_markdown(full_table(own), level=1),
        f"Printed: {table.paper.version}." if table.paper.version else "",
        f"Systems, backbones and settings that are not in the paper's table: [{others}]({others})." if others else "",
        bullets(SETTINGS_LEGEND if table.spec.settings else LEGEND),
        section("Columns", definitions(own)),
        section("Remarks", table.spec.remarks),
        "" if others else _pairs(table),
        section("Printed numbers with a known fault", remarks(own)),
        section("Runs", (Span(run, "code") for run in run_ids(own))),
    )


def _others_page(table: PaperTable, paper: str) -> str:
    shown = full_table(table)
    return page(
        render_markdown(replace(shown, title=f"{shown.title}, other measurements"), level=1),
        "Rows that are not in the paper, with the same metrics. The paper's rows, columns and legend: "
        f"[{paper}]({paper}).",
        _pairs(table),
        section("Runs", (Span(run, "code") for run in run_ids(table))),
    )


def _rows(table: PaperTable, *, printed: bool) -> PaperTable:
    """Return a table with only the rows that the paper prints, or only the others."""
    chosen = [replace(block, rows=tuple(row for row in block.rows if row.printed == printed)) for block in table.blocks]
    return replace(table, blocks=tuple(block for block in chosen if block.rows))


def full_table(table: PaperTable) -> Table:
    """Return a paper's table with all that is known of each line: printed, measured, difference, n, verdict."""
    datasets = dataset_labels(table)

    def lines(row: TableLine) -> list[list[Cell]]:
        return [
            [row.label if not place else "", line.kind, *_marked(row, line.kind, line.cells), line.remark]
            for place, line in enumerate(text_lines(row, datasets))
        ]

    shown = _table(table, lines)
    return replace(shown, columns=[*shown.columns, Column("Measured on", "left")])


def short_table(table: PaperTable) -> Table:
    """Return a paper's table with printed and measured values, verdicts as superscripts, and halves of intervals."""
    datasets = dataset_labels(table)

    def lines(row: TableLine) -> list[list[Cell]]:
        printed = _marked(row, "printed", [cell.printed.text if cell.printed else "" for cell in row.cells])
        later: list[list[Cell]] = [[f"printed, {version}", *texts] for version, texts in later_texts(row).items()]
        halves: list[Cell] = [_half(cell) for cell in row.cells]
        found: list[list[Cell]] = [
            *([["printed", *printed]] if row.printed else []),
            *later,
            *([["measured", *map(_value, row.cells)]] if row.measured else []),
            *([["±", *halves]] if any(halves) else []),
        ]
        label = Span(row.label, note=coverage(row, datasets) if row.measured else "")
        return [["" if place else label, *cells] for place, cells in enumerate(found)]

    return replace(_table(table, lines), notes=[_NOTE, *definitions(table)])


def _table(table: PaperTable, lines: Callable[[TableLine], list[list[Cell]]]) -> Table:
    layout = lay_out(table)
    first = Column("" if table.spec.transpose else "System", "left", key=True)
    rows: list[list[Cell]] = []
    labels: dict[int, str] = {}
    for label, block in layout.blocks:
        labels[len(rows)] = label
        rows += [cells for row in block for cells in lines(row)]
    return Table(
        title(table),
        [first, Column("", "left", key=True), *map(Column, layout.headings)],
        rows,
        blocks=labels,
        label=f"{table.paper.paper}-{table.number}",
    )


def _pairs(table: PaperTable) -> str:
    if not table.pairs:
        return ""
    shown = pair_table(table.pairs)
    rows = [[pair.where, *cells] for pair, cells in zip(table.pairs, shown.rows, strict=True)]
    return render_markdown(replace(shown, columns=[Column("", "left"), *shown.columns], rows=rows))


def _marked(row: TableLine, kind: str, texts: Sequence[str]) -> list[Cell]:
    """Return texts, printed ones as the paper marks them."""
    return [
        Span(text, _MARKS[cell.printed.marks]) if kind == "printed" and cell.printed else text
        for cell, text in zip(row.cells, texts, strict=True)
    ]


def _value(cell: TableCell) -> Cell:
    if cell.measured is None:
        return ""
    value = number(cell.measured.value)
    return (value, Span(_SIGNS[cell.verdict], "superscript")) if cell.verdict in _SIGNS else value


def _half(cell: TableCell) -> str:
    interval = cell.measured.interval if cell.measured else None
    if interval is None:
        return ""
    return number((interval.high - interval.low) / 2) + ("‡" if interval.by == "question" else "")
