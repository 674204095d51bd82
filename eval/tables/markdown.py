"""Tables as Markdown: three lines per system, the paper's bold and underline kept."""

from eval.tables.model import Cell, Row, Table
from eval.tables.text import LEGEND, Line, dataset_labels, lines, remarks, run_ids, title

_MARKS = {"": "{}", "bold": "**{}**", "underline": "<u>{}</u>"}


def render_markdown(table: Table) -> str:
    """Return the table with legend, known faults of the printed numbers, and the runs behind it."""
    headings = ["", "System", "", *(column.label for column in table.columns), "Measured on"]
    align = ["---", "---", "---", *("---:" for _ in table.columns), "---"]
    parts = [f"# {title(table)}", "", _line(headings), _line(align)]
    datasets = dataset_labels(table)
    for block in table.blocks:
        label = block.label
        for row in block.rows:
            system = row.label
            for line in lines(row, table.columns, datasets):
                cells = _marked(row, line) if line.kind == "printed" else line.cells
                parts.append(_line([label, system, line.kind, *map(_stars, cells), line.remark]))
                label = system = ""
    parts += ["", *(f"- {entry}".replace("*", "\\*") for entry in LEGEND)]
    parts += _section("Printed numbers with a known fault", remarks(table))
    parts += _section("Runs", [f"`{run}`" for run in run_ids(table)])
    return "\n".join(parts) + "\n"


def _section(heading: str, entries: list[str]) -> list[str]:
    return ["", f"## {heading}", "", *(f"- {entry}" for entry in entries)] if entries else []


def _stars(text: str) -> str:
    """Keep the mark of a difference from opening emphasis."""
    return text[:-1] + "\\*" if text.endswith("*") and not text.endswith("**") else text


def _marked(row: Row, line: Line) -> list[str]:
    return [_mark(cell, text) for cell, text in zip(row.cells, line.cells, strict=True)]


def _mark(cell: Cell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
