"""Tables as LaTeX (booktabs), one ``table*`` each at footnote size, ready to be input."""

from collections.abc import Sequence

from eval.cli.escaping import latex
from eval.tables.layout import TableLine, TablePage, heading_groups, lay_out
from eval.tables.model import Table, TableCell
from eval.tables.text import coverage, dataset_labels, definitions, number, title

_MARKS = {"": "{}", "bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"}


#: Verdicts as they stand behind a measured value; their words are in the note below the table.
_SIGNS = {"reproduced": "R", "not reproduced": "N", "cannot say": "?", "not comparable": "C"}
_NOTE = (
    r"$\pm$: half of the 95 \% interval for other conversations (cluster $t$); $^\ddagger$ one conversation: over its "
    r"questions, no interval for others. Superscripts say whether the printed number reproduces on the same questions "
    r"(equivalence test, margin 1 point or the rounding): R reproduced, N not reproduced, ? cannot say, C not "
    r"comparable."
)


def render_latex(table: Table) -> str:
    """Return the table; needs the package booktabs. What values were measured on stands in notes below it."""
    page, notes = lay_out(table), dict[str, int]()
    columns = len(page.headings) + 2
    parts = [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{latex(title(table))}.}}",
        rf"\label{{tab:{table.paper.paper}-{table.number}}}",
        rf"\begin{{tabular}}{{ll{'r' * len(page.headings)}}}",
        r"\toprule",
        *_head(page, "" if table.spec.transpose else "System"),
    ]
    datasets = dataset_labels(table)
    for block, rows in page.blocks:
        parts += [r"\midrule", rf"\multicolumn{{{columns}}}{{l}}{{\textit{{{latex(block)}}}}} \\"]
        for row in rows:
            parts += _row(row, _numbered(coverage(row, datasets), notes) if row.measured else "")
    parts += [r"\bottomrule", r"\end{tabular}", "", r"\smallskip\parbox{\textwidth}{\scriptsize " + _NOTE]
    parts += [latex(f"({number}) {text}.") for text, number in notes.items()]
    parts += [latex(f"{entry}.") for entry in definitions(table)]
    return "\n".join([*parts, "}", r"\end{table*}"]) + "\n"


def _numbered(note: str, notes: dict[str, int]) -> str:
    """Mark of a note, which is written once."""
    return f" ({notes.setdefault(note, len(notes) + 1)})" if note else ""


def _row(row: TableLine, mark: str) -> list[str]:
    """Printed values, measured values with their verdict, and half of each interval."""
    system, found = latex(row.label) + mark, []
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
    below = [heading for _, names in groups for heading in names]
    if not any(group for group, _ in groups):
        return [_line([first, "", *map(latex, below)])]
    above, rules = ["", ""], []
    for group, names in groups:
        above.append(rf"\multicolumn{{{len(names)}}}{{c}}{{{latex(group)}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{column}-{column + len(names) - 1}}}")
        column += len(names)
    return [_line(above), "".join(rules), _line([first, "", *map(latex, below)])]


def _mark(cell: TableCell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _signed(text: str) -> str:
    """Give a leading minus its proper glyph."""
    return "$-$" + latex(text[1:]) if text.startswith("-") else latex(text)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
