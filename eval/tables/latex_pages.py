"""A table cut into several that fit on paper: by groups of columns, and by lines."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from eval.tables.layout import TableLine, TablePage, heading_groups


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
