"""Tables as Markdown: some lines per system, the paper's bold and underline kept."""

from collections.abc import Iterable, Sequence

from eval.commands.escaping import markdown, markdown_cell, markdown_code, markdown_row
from eval.results.tables.layout import TableLine, lay_out
from eval.results.tables.model import Table, TableCell
from eval.results.tables.text import (
    LEGEND,
    PAIR_HEADINGS,
    PAIR_LEGEND,
    dataset_labels,
    definitions,
    pair_cells,
    remarks,
    run_ids,
    text_lines,
    title,
)

_MARKS = {"": "{}", "bold": "**{}**", "underline": "<u>{}</u>"}


def render_markdown(table: Table) -> str:
    """Return the table with legend, paired tests, known faults of the printed numbers, and the runs behind it."""
    page = lay_out(table)
    first = "" if table.spec.transpose else "System"
    align = ["---", "---", "---", *("---:" for _ in page.headings), "---"]
    parts = [f"# {markdown(title(table))}", "", _line(["", first, "", *page.headings, "Measured on"]), _line(align)]
    datasets = dataset_labels(table)
    for block, rows in page.blocks:
        label = block
        for row in rows:
            system = row.label
            for line in text_lines(row, datasets):
                cells = [markdown_cell(text) for text in line.cells]
                if line.kind == "printed":
                    cells = _marked(row, cells)
                around = [markdown_cell(text) for text in (label, system, line.kind, line.remark)]
                parts.append(markdown_row([*around[:3], *map(_stars, cells), around[3]]))
                label = system = ""
    parts += ["", *(f"- {markdown(entry)}".replace("*", "\\*") for entry in LEGEND)]
    parts += _section("Columns", map(markdown, definitions(table)))
    parts += _section("Remarks", map(markdown, table.spec.remarks))
    parts += _pairs(table)
    parts += _section("Printed numbers with a known fault", map(markdown, remarks(table)))
    parts += _section("Runs", map(markdown_code, run_ids(table)))
    return "\n".join(parts) + "\n"


def _pairs(table: Table) -> list[str]:
    if not table.pairs:
        return []
    rows = [("", *PAIR_HEADINGS), ("---", "---", "---", "---", *("---:" for _ in PAIR_HEADINGS[3:]))]
    rows += [(pair.where, *pair_cells(pair)) for pair in table.pairs]
    legend = [f"- {entry}" for entry in PAIR_LEGEND]
    return ["", "## Paired tests", "", *(_line(row) for row in rows), "", *legend]


def _section(heading: str, entries: Iterable[str]) -> list[str]:
    listed = [f"- {entry}" for entry in entries]
    return ["", f"## {heading}", "", *listed] if listed else []


def _stars(text: str) -> str:
    """Keep the mark of a difference from opening emphasis."""
    return text[:-1] + "\\*" if text.endswith("*") and not text.endswith("**") else text


def _marked(row: TableLine, cells: Sequence[str]) -> list[str]:
    return [_mark(cell, text) for cell, text in zip(row.cells, cells, strict=True)]


def _mark(cell: TableCell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _line(cells: Sequence[str]) -> str:
    return markdown_row([markdown_cell(cell) for cell in cells])
