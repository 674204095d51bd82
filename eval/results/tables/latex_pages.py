"""Tables as LaTeX floats, and tables cut into several that fit on a page: by columns, and by lines."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from eval.commands.escaping import latex
from eval.results.tables.layout import TableLine, TablePage, heading_groups


def table_float(
    title: str, label: str, part: tuple[int, int], *, columns: str, body: Sequence[str], notes: Sequence[str]
) -> str:
    """One table, or one part of a table, as a float over the width of the page; needs the package booktabs.

    Args:
        title: of the whole table, which becomes the caption.
        label: of the whole table, behind ``tab:``.
        part: which part this is, from 0, and how many there are.
        columns: the tabular's column specification.
        body: everything between begin and end of the tabular.
        notes: below it, as LaTeX.
    """
    place, count = part
    caption = f"{title}, part {place + 1} of {count}" if count > 1 else title
    below = ["", rf"\smallskip\parbox{{\textwidth}}{{\scriptsize {notes[0]}", *notes[1:], "}"] if notes else []
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{latex(caption)}.}}",
        rf"\label{{tab:{label}{f'-{place + 1}' if place else ''}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        *body,
        r"\end{tabular}",
        *below,
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def packed(sizes: Sequence[float], free: float) -> list[list[int]]:
    """Places of the sizes in groups that each fill a page, in order; a size that is larger stands alone all the same.

    Returns:
        At least one group, which is empty where there are no sizes.
    """
    groups: list[list[int]] = [[]]
    used = 0.0
    for place, size in enumerate(sizes):
        if groups[-1] and used + size > free:
            groups.append([])
            used = 0.0
        groups[-1].append(place)
        used += size
    return groups


def split_columns(page: TablePage, fits: Callable[[TablePage], bool]) -> list[TablePage]:
    """The page, or pages with all lines and some groups of its columns each.

    Args:
        page: the whole table.
        fits: whether a page is narrow enough; one group of columns that is not stands alone all the same.
    """
    parts: list[list[int]] = []
    for group in _column_groups(page):
        joined = [*parts[-1], *group] if parts else group
        if parts and fits(_columns(page, joined)):
            parts[-1] = joined
        else:
            parts.append(group)
    return [_columns(page, part) for part in parts]


def split_lines(
    page: TablePage, *, height: Callable[[TableLine], float], heading: float, free: float
) -> list[TablePage]:
    """The page, or pages with all columns and some of its lines each; a block that goes on has its label again.

    Args:
        page: the whole table.
        height: of a line, points.
        heading: height of a block's label, points.
        free: what a page has for labels and lines, points; a line that needs more stands alone all the same.
    """
    pages: list[list[tuple[str, list[TableLine]]]] = [[]]
    used = 0.0
    for label, rows in page.blocks:
        begins = True
        for row in rows:
            need = height(row) + (heading if begins else 0.0)
            if pages[-1] and used + need > free:
                pages.append([])
                used, need, begins = 0.0, height(row) + heading, True
            if begins:
                pages[-1].append((label, []))
            pages[-1][-1][1].append(row)
            used, begins = used + need, False
    return [TablePage(page.headings, tuple((label, tuple(rows)) for label, rows in blocks)) for blocks in pages]


def _column_groups(page: TablePage) -> list[list[int]]:
    found, place = [], 0
    for _, names in heading_groups(page.headings):
        found.append(list(range(place, place + len(names))))
        place += len(names)
    return found


def _columns(page: TablePage, chosen: Sequence[int]) -> TablePage:
    """A page with some of its columns; lines that then say nothing are left out."""

    def cut(row: TableLine) -> TableLine:
        return replace(
            row,
            headings=tuple(row.headings[place] for place in chosen),
            cells=tuple(row.cells[place] for place in chosen),
        )

    blocks = [
        (label, tuple(one for one in map(cut, rows) if one.printed or one.measured)) for label, rows in page.blocks
    ]
    headings = tuple(page.headings[place] for place in chosen)
    return TablePage(headings, tuple((label, rows) for label, rows in blocks if rows))
