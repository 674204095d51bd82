"""Tables as LaTeX (booktabs), ready to be input: ``table*`` at footnote size, as many as keep every one legible."""

from collections.abc import Sequence
from functools import partial

from eval.commands.escaping import latex
from eval.results.tables.latex_pages import split_columns, split_lines, table_float
from eval.results.tables.latex_size import (
    CAPTION,
    LINE,
    RULE,
    TEXT_HEIGHT,
    TEXT_WIDTH,
    lines_of,
    notes_height,
    ragged,
    stacked,
    table_width,
    text_width,
)
from eval.results.tables.layout import TableLine, TablePage, heading_groups, lay_out
from eval.results.tables.model import Table, TableCell
from eval.results.tables.text import coverage, dataset_labels, definitions, number, title

_MARKS = {"": "{}", "bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"}


#: Verdicts as they stand behind a measured value; their words are in the note below the table.
_SIGNS = {"reproduced": "R", "not reproduced": "N", "cannot say": "?", "not comparable": "C"}
_NOTE = (
    r"$\pm$: half of the 95 \% interval for other conversations (cluster $t$); $^\ddagger$ one conversation: over its "
    r"questions, no interval for others. Superscripts say whether the printed number reproduces on the same questions "
    r"(equivalence test, margin 1 point or the rounding): R reproduced, N not reproduced, ? cannot say, C not "
    r"comparable."
)
#: Widest column of names, points; longer names are set in several lines.
_NAMES = 110.0


def render_latex(table: Table) -> str:
    """Return the table; needs the package booktabs. What values were measured on stands in notes below it.

    A table that is too wide for a page at footnote size is several, each with some groups of columns; one that is too
    high is several, each with some of the lines.
    """
    page = lay_out(table)
    parts = _parts(table, page)
    return "\n".join(_one(table, part, place, len(parts)) for place, part in enumerate(parts))


def _parts(table: Table, page: TablePage) -> list[TablePage]:
    """The page, or pages with some of its columns and lines each, that fit on paper."""
    below = notes_height([_NOTE, *definitions(table)])
    free = TEXT_HEIGHT - CAPTION - 3 * LINE - 3 * RULE - below
    labels = dataset_labels(table)
    return [
        part
        for columns in split_columns(page, lambda some: _fits(table, some))
        for part in split_lines(
            columns,
            height=partial(_height, labels=labels, wraps=bool(_paragraph(columns))),
            heading=LINE + RULE,
            free=free,
        )
    ]


def _height(line: TableLine, labels: dict[str, str], wraps: bool) -> float:
    """Height of a line with its measured values, their intervals and the note that names what they rest on, points."""
    rows = line.printed + 2 * line.measured
    named = lines_of(f"{line.label} (99)", _NAMES) if wraps else 1
    note = notes_height([coverage(line, labels)]) if line.measured else 0.0
    return LINE * (rows + named - 1) + note


def _fits(table: Table, page: TablePage) -> bool:
    body = _body(table, page, {})
    return table_width(body, _paragraph(page)) <= TEXT_WIDTH


def _paragraph(page: TablePage) -> float:
    """Width of the names' column where one is too long for a line; 0 where none is."""
    longest = max((text_width(f"{row.label} (99)") for _, rows in page.blocks for row in rows), default=0.0)
    return _NAMES if longest > _NAMES else 0.0


def _one(table: Table, page: TablePage, place: int, count: int) -> str:
    notes = dict[str, int]()
    body, width = _body(table, page, notes), _paragraph(page)
    names = rf"p{{{width:.0f}pt}}" if width else "l"
    meanings = definitions(table) if place == 0 else []
    return table_float(
        title(table),
        f"{table.paper.paper}-{table.number}",
        (place, count),
        columns=f"{names}l{'r' * len(page.headings)}",
        body=body,
        notes=[
            _NOTE,
            *(latex(f"({number}) {text}.") for text, number in notes.items()),
            *(latex(f"{entry}.") for entry in meanings),
        ],
    )


def _body(table: Table, page: TablePage, notes: dict[str, int]) -> list[str]:
    """Everything between begin and end of the tabular; fills the notes."""
    columns, datasets, wraps = len(page.headings) + 2, dataset_labels(table), bool(_paragraph(page))
    lines = [r"\toprule", *_head(page, "" if table.spec.transpose else "System")]
    for block, rows in page.blocks:
        lines += [r"\midrule", rf"\multicolumn{{{columns}}}{{l}}{{\textit{{{latex(block)}}}}} \\"]
        for row in rows:
            mark = _numbered(coverage(row, datasets), notes) if row.measured else ""
            lines += _row(row, mark, wraps)
    return [*lines, r"\bottomrule"]


def _numbered(note: str, notes: dict[str, int]) -> str:
    """Mark of a note, which is written once."""
    return f" ({notes.setdefault(note, len(notes) + 1)})" if note else ""


def _row(row: TableLine, mark: str, wraps: bool) -> list[str]:
    """Printed values, measured values with their verdict, and half of each interval."""
    system, found = (ragged(row.label) if wraps else latex(row.label)) + mark, []
    if row.printed:
        texts = [latex(cell.printed.text) if cell.printed else "" for cell in row.cells]
        found.append(_line([system, "printed", *map(_mark, row.cells, texts)]))
        system = ""
    if row.measured:
        found.append(_line([system, "measured", *map(_value, row.cells)]))
        halves = [_half(cell) for cell in row.cells]
        found += [_line(["", r"$\pm$", *halves])] if any(halves) else []
    return found


def _value(cell: TableCell) -> str:
    if cell.measured is None:
        return ""
    return _signed(number(cell.measured.value)) + (
        f"$^\\mathrm{{{_SIGNS[cell.verdict]}}}$" if cell.verdict in _SIGNS else ""
    )


def _half(cell: TableCell) -> str:
    interval = cell.measured.interval if cell.measured else None
    if interval is None:
        return ""
    return number((interval.high - interval.low) / 2) + (r"$^\ddagger$" if interval.by == "question" else "")


def _head(page: TablePage, first: str) -> list[str]:
    """Headings in one row, or in two where neighbours share a group, as the papers set them."""
    groups, column = heading_groups(page.headings), 3
    below = [stacked(heading) for _, names in groups for heading in names]
    if not any(group for group, _ in groups):
        return [_line([first, "", *below])]
    above, rules = ["", ""], []
    for group, names in groups:
        above.append(rf"\multicolumn{{{len(names)}}}{{c}}{{{latex(group)}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{column}-{column + len(names) - 1}}}")
        column += len(names)
    return [_line(above), "".join(rules), _line([first, "", *below])]


def _mark(cell: TableCell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _signed(text: str) -> str:
    """Give a leading minus its proper glyph."""
    return "$-$" + latex(text[1:]) if text.startswith("-") else latex(text)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
