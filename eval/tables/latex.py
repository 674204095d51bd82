"""Tables as LaTeX (booktabs, graphicx), one ``table*`` each, ready to be input."""

from collections.abc import Sequence

from eval.cli.escaping import latex
from eval.tables.layout import Line, Page, heading_groups, lay_out
from eval.tables.model import Cell, Table
from eval.tables.text import LEGEND, TextLine, dataset_labels, definitions, text_lines, title

_MARKS = {"": "{}", "bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"}


def render_latex(table: Table) -> str:
    """Return the table; needs the packages booktabs and graphicx."""
    page = lay_out(table)
    parts = [
        r"\begin{table*}",
        r"\centering",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{lll{'r' * len(page.headings)}l}}",
        r"\toprule",
        *_head(page, "" if table.spec.transpose else "System"),
    ]
    datasets = dataset_labels(table)
    for block, rows in page.blocks:
        parts.append(r"\midrule")
        label = latex(block)
        for row in rows:
            system = latex(row.label)
            for line in text_lines(row, datasets):
                cells = _marked(row, line) if line.kind == "printed" else [_signed(text) for text in line.cells]
                parts.append(_line([label, system, line.kind, *cells, latex(line.remark)]))
                label = system = ""
    said = [*LEGEND, *table.spec.remarks, *definitions(table)]
    legend = latex(". ".join(entry[0].upper() + entry[1:] for entry in said))
    parts += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{latex(title(table))}. {legend}.}}",
        rf"\label{{tab:{table.paper.paper}-{table.number}}}",
        r"\end{table*}",
    ]
    return "\n".join(parts) + "\n"


def _head(page: Page, first: str) -> list[str]:
    """Headings in one row, or in two where neighbours share a group, as the papers set them."""
    groups, column = heading_groups(page.headings), 4
    below = [heading for _, names in groups for heading in names]
    if not any(group for group, _ in groups):
        return [_line(["", first, "", *map(latex, below), "Measured on"])]
    above, rules = ["", "", ""], []
    for group, names in groups:
        above.append(rf"\multicolumn{{{len(names)}}}{{c}}{{{latex(group)}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{column}-{column + len(names) - 1}}}")
        column += len(names)
    return [_line([*above, ""]), "".join(rules), _line(["", first, "", *map(latex, below), "Measured on"])]


def _marked(row: Line, line: TextLine) -> list[str]:
    return [_mark(cell, latex(text)) for cell, text in zip(row.cells, line.cells, strict=True)]


def _mark(cell: Cell, text: str) -> str:
    return _MARKS[cell.printed.marks].format(text) if cell.printed is not None else text


def _signed(text: str) -> str:
    """Give a leading minus its proper glyph."""
    return "$-$" + latex(text[1:]) if text.startswith("-") else latex(text)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
