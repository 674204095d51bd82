"""Layout of a table: systems down and metrics across, or transposed as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.results.tables.model import PaperTable, TableBlock, TableCell, TableColumn

#: Stands where a block has no row of another block's heading.
_NOTHING = TableCell("", None, None, measurable=False)


@dataclass(frozen=True, slots=True)
class TableLine:
    """Cells that are in one line, with the headings above them."""

    label: str
    headings: tuple[str, ...]
    cells: tuple[TableCell, ...]

    @property
    def printed(self) -> bool:
        """Whether the paper prints one of them."""
        return any(cell.printed is not None for cell in self.cells)

    @property
    def measured(self) -> bool:
        """Whether one of them was measured."""
        return any(cell.measured is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table as it is written: headings, and the lines of each block."""

    headings: tuple[str, ...]
    blocks: tuple[tuple[str, tuple[TableLine, ...]], ...]


def lay_out(table: PaperTable) -> TableLayout:
    """Arrange a table as its paper does."""
    if table.spec.transpose:
        return _transposed(table)
    headings = tuple(column.heading for column in table.columns)
    return TableLayout(
        headings,
        tuple(
            (block.label, tuple(TableLine(row.label, headings, row.cells) for row in block.rows))
            for block in table.blocks
        ),
    )


def _transposed(table: PaperTable) -> TableLayout:
    headings = tuple(dict.fromkeys(row.label for block in table.blocks for row in block.rows))
    return TableLayout(
        headings, tuple((block.label, _metrics(block, table.columns, headings)) for block in table.blocks)
    )


def _metrics(block: TableBlock, columns: Sequence[TableColumn], headings: tuple[str, ...]) -> tuple[TableLine, ...]:
    rows = {row.label: row for row in block.rows}
    lines = [
        TableLine(
            column.heading, headings, tuple(rows[name].cells[i] if name in rows else _NOTHING for name in headings)
        )
        for i, column in enumerate(columns)
    ]
    return tuple(line for line in lines if line.printed or line.measured)
