"""Tables on a terminal: what does not fit side by side goes below, and no figure is ever cut."""

from typing import TYPE_CHECKING

from eval.commands.rendering.table import Cell, Column, Table, spans, text_of
from eval.commands.terminal import console

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable
    from rich.text import Text

#: Characters between two columns of a table, and those at its sides.
_GAP, _SIDES = 2, 2
#: Least characters that a column of texts is narrowed to.
_LEAST_TEXT = 8
_STYLES = {"bold": "bold", "underline": "underline"}


class FoldedTable:
    """A table that rich renders in the width of its console."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        widths = [_width(self._table, place) for place in range(len(self._table.columns))]
        for number, part in enumerate(self._table.parts(widths, options.max_width - _SIDES, _GAP, _LEAST_TEXT)):
            yield _rich(part, ", ".join(filter(None, (part.title, "continued" if number else ""))))
        for note in self._table.notes:
            yield Text(note, "dim")


def render_terminal(table: Table) -> FoldedTable:
    """Return a table for the ``print`` of a rich console: in a narrow window several, each with the key columns."""
    return FoldedTable(table.numbered().labelled())


def show(table: Table, out: "Console | None" = None) -> None:
    """Print a table; on standard output, where no console is given."""
    (out or console()).print(render_terminal(table))


def _width(table: Table, place: int) -> int:
    from rich.cells import cell_len

    column = table.columns[place]
    return max(map(cell_len, (column.heading, *(text_of(row[place], column) for row in table.rows))))


def _rich(table: Table, title: str) -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    shown = RichTable(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for place, column in enumerate(table.columns):
        figures = column.align == "right"
        least = _width(table, place) if figures and not column.key else None
        shown.add_column(
            column.heading, justify=column.align, style=column.style, no_wrap=figures, min_width=least, overflow="fold"
        )
    for row in table.rows:
        shown.add_row(*(_cell(*one) for one in zip(row, table.columns, strict=True)))
    return shown


def _cell(cell: Cell, column: Column) -> "Text":
    from rich.text import Text

    return Text.assemble(*((span.text, span.colour or _STYLES.get(span.style, "")) for span in spans(cell, column)))
