r"""Tables as LaTeX: a ``longtable`` each, which LaTeX breaks between pages; needs longtable, booktabs and array.

A ``longtable`` needs text of one column. A table with more characters in a line than a page of 16 cm has at
footnote size is several, each with the columns that say what a row is about.
"""

import re
import textwrap
from collections.abc import Sequence

from eval.commands.escaping import latex
from eval.commands.rendering.table import Cell, Column, Span, Table, spans, text_of

#: Characters of a line, and of the gap between two columns; figures and small letters are about as wide as half an em.
_LINE, _GAP = 100, 1.5
#: A column of longer texts is set in several lines of this many characters.
_TEXT = 26
#: A longer heading is set in several lines.
_HEADING = 9
_STYLES = {
    "": "{}", "bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}", "code": r"\texttt{{{}}}",
    "superscript": r"\textsuperscript{{{}}}",
}  # fmt: skip
#: The minus sign of a number, which is not a hyphen.
_MINUS = re.compile(r"(?<!\w)-(?=\d)")
#: Behind these, within a word, a setting's name may be broken.
_BREAKS = re.compile(r"(?:\\_|=|[./](?=[A-Za-z]))(?=\w)")


def render_latex(table: Table) -> str:
    """Return a table with its caption and label; its notes are below, those of the first part alone."""
    table = table.numbered()
    widths = [_width(table, place) for place in range(len(table.columns))]
    parts = table.parts([min(width, _TEXT) for width in widths], _LINE, _GAP)
    return "\n".join(_part(part, place, len(parts)) for place, part in enumerate(parts))


def _part(table: Table, place: int, count: int) -> str:
    wide = _wide(table)
    caption = f"{table.title}, part {place + 1} of {count}" if count > 1 else table.title
    head = [r"\toprule", " & ".join(map(_heading, table.columns, wide)) + r" \\", r"\midrule"]
    lines = [
        r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{{{''.join(map(_kind, wide, table.columns))}}}",
        rf"\caption{{{latex(caption)}.}}\label{{tab:{table.label}{f'-{place + 1}' if place else ''}}} \\",
        *(*head, r"\endfirsthead"),
        *(*head, r"\endhead"),
        r"\bottomrule",
        r"\endfoot",
        *_rows(table, wide),
        r"\end{longtable}",
        *([] if place else _notes(table.notes)),
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def _rows(table: Table, wide: Sequence[bool]) -> list[str]:
    lines = []
    for place, row in enumerate(table.rows):
        if place in table.blocks:
            label = rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textit{{{latex(table.blocks[place])}}}}} \\"
            lines += [r"\midrule", label] if place else [label]
        cells = (_cell(*one) for one in zip(row, table.columns, wide, strict=True))
        lines.append(" & ".join(cells) + r" \\")
    return lines


def _notes(notes: Sequence[str]) -> list[str]:
    written = (_breakable(latex(f"{note}.")) for note in notes)
    return [r"\noindent{\scriptsize\raggedright", *written, r"\par}"] if notes else []


def _width(table: Table, place: int) -> int:
    """Return the characters of the longest cell or line of the heading of a column."""
    column = table.columns[place]
    cells = [text_of(row[place], column) for row in table.rows]
    return max(map(len, (*cells, *_heading_lines(column.heading))), default=0)


def _wide(table: Table) -> list[bool]:
    return [_width(table, place) > _TEXT for place in range(len(table.columns))]


def _kind(wide: bool, column: Column) -> str:
    return rf">{{\raggedright\arraybackslash}}p{{{_TEXT / 2:g}em}}" if wide else column.align[0]


def _heading(column: Column, wide: bool) -> str:
    if wide:
        return _breakable(latex(column.heading))
    lines = _heading_lines(column.heading)
    text = r" \\ ".join(map(latex, lines))
    return rf"\shortstack[{column.align[0]}]{{{text}}}" if len(lines) > 1 else text


def _heading_lines(heading: str) -> list[str]:
    return textwrap.wrap(heading, _HEADING, break_long_words=False, break_on_hyphens=False)


def _cell(cell: Cell, column: Column, wide: bool) -> str:
    text = "".join(map(_span, spans(cell, column)))
    return _breakable(text) if wide else text


def _breakable(text: str) -> str:
    return _BREAKS.sub(r"\g<0>\\allowbreak ", text)


def _span(span: Span) -> str:
    return _STYLES[span.style].format(_MINUS.sub("$-$", latex(span.text)))
