"""Tables as LaTeX (booktabs, graphicx), one ``table*`` each, ready to be input."""

from eval.tables.model import Cell, Row, Table
from eval.tables.text import LEGEND, Line, dataset_labels, lines, title

_MARKS = {"": "{}", "bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "τ": r"$\tau$",
}


def escape(text: str) -> str:
    """Make plain text safe for LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def render_latex(table: Table) -> str:
    """Return the table; needs the packages booktabs and graphicx."""
    headings = ["", "System", "", *(column.label for column in table.columns), "Measured on"]
    parts = [
        r"\begin{table*}",
        r"\centering",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{lll{'r' * len(table.columns)}l}}",
        r"\toprule",
        _line([escape(heading) for heading in headings]),
    ]
    datasets = dataset_labels(table)
    for block in table.blocks:
        parts.append(r"\midrule")
        label = escape(block.label)
        for row in block.rows:
            system = escape(row.label)
            for line in lines(row, table.columns, datasets):
                cells = _marked(row, line) if line.kind == "printed" else [_signed(text) for text in line.cells]
                parts.append(_line([label, system, line.kind, *cells, escape(line.remark)]))
                label = system = ""
    legend = escape(". ".join(entry[0].upper() + entry[1:] for entry in LEGEND))
    parts += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{escape(title(table))}. {legend}.}}",
        rf"\label{{tab:{table.paper.paper}-{table.number}}}",
        r"\end{table*}",
    ]
    return "\n".join(parts) + "\n"


def _marked(row: Row, line: Line) -> list[str]:
    return [_mark(cell, escape(text)) for cell, text in zip(row.cells, line.cells, strict=True)]


def _mark(cell: Cell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _signed(text: str) -> str:
    """Give a leading minus its proper glyph."""
    return "$-$" + escape(text[1:]) if text.startswith("-") else escape(text)


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
