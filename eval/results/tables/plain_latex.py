"""Tables that are not a paper's as LaTeX: at footnote size, as many as keep every one on a page and legible."""

from collections.abc import Sequence
from dataclasses import replace

from eval.commands.escaping import latex
from eval.results.tables.latex_pages import packed, table_float
from eval.results.tables.latex_size import (
    CAPTION,
    GAP,
    LINE,
    RULE,
    TEXT_HEIGHT,
    TEXT_WIDTH,
    lines_of,
    notes_height,
    ragged,
    stacked,
    text_width,
)
from eval.results.tables.plain import PlainTable

#: Widths of columns of words, points; longer texts are set in several lines. The first counts that needs one table.
_WORDS = (110.0, 92.0, 80.0, 70.0)
#: Widest table, points: names of presets have more wide letters than the estimate of their width counts on.
_ROOM = 0.95 * TEXT_WIDTH
#: LaTeX gives up where it holds about a hundred tables for pages to come.
_HELD = 40
#: A page has room for so much of a table below its head, however long its notes are.
_LEAST = 200.0


def plain_latex(table: PlainTable, label: str) -> str:
    """The table in LaTeX; needs the package booktabs.

    A table that is too wide or too high for a page is several: each has the columns of words on the left, some of the
    others, and some of the rows. The notes are below the first.

    Args:
        table: what to set.
        label: the part of its LaTeX label behind ``tab:``.
    """
    choices = [(words, _wide_parts(table, words)) for words in _WORDS]
    words, wide = next((choice for choice in choices if len(choice[1]) == 1), choices[0])
    parts = [part for columns in wide for part in _high_parts(columns, words)]
    return "\n".join(
        _one(replace(part, notes=() if place else table.notes), label, (place, len(parts)), words)
        for place, part in enumerate(parts)
    )


def in_one_file(tables: Sequence[str]) -> str:
    r"""Tables one after another without text between; ``\clearpage`` makes LaTeX output those that it holds."""
    parts, held = [], 0
    for table in tables:
        held += table.count(r"\begin{table*}")
        parts.append(table)
        if held >= _HELD:
            parts.append("\\clearpage\n")
            held = 0
    return "\n".join(parts)


def _wide_parts(table: PlainTable, words: float) -> list[PlainTable]:
    """The table, or tables with the words on the left and some of the other columns each."""
    widths = [_width(table, place, words) + GAP for place in range(len(table.headings))]
    left = table.left
    groups = packed(widths[left:], _ROOM - sum(widths[:left]))
    return [_columns(table, [*range(left), *(left + place for place in group)]) for group in groups]


def _columns(table: PlainTable, chosen: Sequence[int]) -> PlainTable:
    return replace(
        table,
        headings=tuple(table.headings[place] for place in chosen),
        rows=[[row[place] for place in chosen] for row in table.rows],
    )


def _width(table: PlainTable, place: int, words: float) -> float:
    """Width of a column, points, without the blank beside it."""
    cells = max((text_width(row[place]) for row in table.rows), default=0.0)
    return max(min(cells, words), text_width(stacked(table.headings[place])))


def _wraps(table: PlainTable, words: float) -> list[bool]:
    """Which columns hold texts in several lines."""
    return [any(text_width(row[place]) > words for row in table.rows) for place in range(len(table.headings))]


def _high_parts(table: PlainTable, words: float) -> list[PlainTable]:
    """The table, or tables with some of its rows each."""
    wraps = _wraps(table, words)
    free = max(TEXT_HEIGHT - CAPTION - 4 * LINE - 3 * RULE - notes_height(table.notes), _LEAST)
    heights = [
        LINE * max(lines_of(cell, words) if wrap else 1 for cell, wrap in zip(row, wraps, strict=True))
        for row in table.rows
    ]
    return [replace(table, rows=[table.rows[place] for place in group]) for group in packed(heights, free)]


def _one(table: PlainTable, label: str, part: tuple[int, int], words: float) -> str:
    wraps = _wraps(table, words)
    plain = ["l"] * table.left + ["r"] * (len(wraps) - table.left)
    head = " & ".join(map(stacked, table.headings)) + r" \\"
    return table_float(
        table.title,
        label,
        part,
        columns="".join(rf"p{{{words:.0f}pt}}" if wrap else kind for wrap, kind in zip(wraps, plain, strict=True)),
        body=[r"\toprule", head, r"\midrule", *(_row(row, wraps) for row in table.rows), r"\bottomrule"],
        notes=[latex(f"{note}.") for note in table.notes],
    )


def _row(row: Sequence[str], wraps: Sequence[bool]) -> str:
    cells = [ragged(cell) if wrap else latex(cell) for cell, wrap in zip(row, wraps, strict=True)]
    # behind a last paragraph that is set ragged, \\ would end its line alone
    return " & ".join(cells) + (r" \tabularnewline" if wraps[-1] else r" \\")
