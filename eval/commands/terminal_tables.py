"""Tables for narrow windows: columns that do not fit side by side go below, and no number is truncated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from eval.commands.terminal import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

#: Columns between two columns of a table, and those at its sides.
_GAP, _SIDES = 2, 2
#: Least columns that a column of texts is narrowed to.
_LEAST_TEXT = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        heading: above it.
        cells: one for each row.
        align: ``left`` for texts.
        together: it is kept in the table of the column before it.
        style: of rich.
        styles: of each cell, where they differ.
    """

    heading: str
    cells: Sequence[str]
    align: Literal["left", "right"] = "right"
    together: bool = False
    style: str = ""
    styles: Sequence[str] = ()
    width: int = field(init=False)

    def __post_init__(self) -> None:
        from rich.cells import cell_len

        object.__setattr__(self, "width", max(map(cell_len, (self.heading, *self.cells))))


def show_folded(title: str, keys: Sequence[Column], columns: Sequence[Column], out: "Console | None" = None) -> None:
    """Print a table, in several if it is too wide; each begins with the same columns.

    Args:
        title: above the first.
        keys: columns that say what a row is about; their texts may wrap, figures never.
        columns: the others.
        out: console; ``None``: standard output.
    """
    out = out or console()
    width = out.width - _SIDES
    for number, part in enumerate(folded(keys, columns, width)):
        out.print(_table(title if not number else f"{title}, continued", keys, part))


def show_table(table: "Table", keys: int = 1) -> None:
    """Print a table of texts that rich would squeeze into the window; see :func:`show_folded`.

    Args:
        table: its cells are texts.
        keys: number of its first columns that every part begins with.
    """
    columns = [
        Column(
            str(column.header), [str(cell) for cell in column.cells], "right" if column.justify == "right" else "left"
        )
        for column in table.columns
    ]
    show_folded(str(table.title or ""), columns[:keys], columns[keys:])


def folded(keys: Sequence[Column], columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Share columns out over as many tables as needed, in their order.

    Args:
        keys: columns that every table begins with.
        columns: to share out.
        width: columns of the window.
    """
    first = _width_of_keys(keys, columns, width)
    tables: list[list[Column]] = [[]]
    used = first
    for group in _groups(columns):
        wanted = sum(column.width + _GAP for column in group)
        if tables[-1] and used + wanted > width:
            tables.append([])
            used = first
        tables[-1] += group
        used += wanted
    return tables


def _groups(columns: Sequence[Column]) -> list[list[Column]]:
    groups: list[list[Column]] = []
    for column in columns:
        if column.together and groups:
            groups[-1].append(column)
        else:
            groups.append([column])
    return groups


def _width_of_keys(keys: Sequence[Column], columns: Sequence[Column], width: int) -> int:
    """Return the width of the key columns: theirs, or what the widest group of other columns leaves."""
    natural = sum(key.width for key in keys) + _GAP * (len(keys) - 1)
    widest = max((sum(column.width + _GAP for column in group) for group in _groups(columns)), default=0)
    return min(natural, max(width - widest, _LEAST_TEXT * len(keys) + _GAP * (len(keys) - 1)))


def _table(title: str, keys: Sequence[Column], columns: Sequence[Column]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for key in keys:
        # A figure never wraps; a text does where the window leaves it no other way.
        table.add_column(key.heading, justify=key.align, no_wrap=key.align == "right", overflow="fold")
    for column in columns:
        figures = column.align == "right"  # texts may wrap, figures never
        least = column.width if figures else None
        table.add_column(
            column.heading, justify=column.align, style=column.style, no_wrap=figures, min_width=least, overflow="fold"
        )
    for cells in zip(*(_styled(column) for column in (*keys, *columns)), strict=True):
        table.add_row(*cells)
    return table


def _styled(column: Column) -> "Sequence[str | Text]":
    from rich.text import Text

    if not column.styles:
        return column.cells
    return [Text(cell, style) for cell, style in zip(column.cells, column.styles, strict=True)]
