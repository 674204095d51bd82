"""Picking cells of a table by what a reader sees: table number, row label, column label."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval.results.tables.model import PaperTable, Row, TableBlock, TableCell, TableColumn
from memsys.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CellPlace:
    """One cell with where it is."""

    table: PaperTable
    block: TableBlock
    row: Row
    column: TableColumn
    cell: TableCell


def find_cells(table: PaperTable, row: str, column: str, block: str | None = None) -> list[CellPlace]:
    """Find the cells of a row and column, one per block that has the row.

    Args:
        table: the table.
        row: label of the row, or name of its system; case and punctuation do not matter.
        column: label of the column; case and punctuation do not matter.
        block: label of the block, or name of its backbone or data set; ``None`` for all.

    Raises:
        ConfigError: there is no such row, column or block; lists those there are.
    """
    columns = [entry.label for entry in table.columns]
    wanted = _match(column, ((label,) for label in columns), f"column {column!r}", columns, table)
    if block is not None:
        known = [part.label for part in table.blocks]
        names = ((part.label, part.backbone, part.dataset) for part in table.blocks)
        kept = _match(block, names, f"block {block!r}", known, table)
        blocks = [table.blocks[index] for index in kept]
    else:
        blocks = list(table.blocks)
    rows = [(part, entry) for part in blocks for entry in part.rows]
    labels = list(dict.fromkeys(entry.label for _, entry in rows))
    chosen = _match(row, ((entry.label, _name(entry, part)) for part, entry in rows), f"row {row!r}", labels, table)
    return [
        CellPlace(table, *rows[index], table.columns[place], rows[index][1].cells[place])
        for index in chosen
        for place in wanted
    ]


def _name(row: Row, block: TableBlock) -> str:
    """Name of a row's system; what follows the system's printed row, and a variant, are named by their labels alone."""
    if row.printed:
        return row.key.system
    follows = any(other.printed and other.key.system == row.key.system for other in block.rows)
    return "" if row.key.variant or follows else row.key.system


def _match(
    wanted: str, names: Iterable[Sequence[str]], what: str, choices: Sequence[str], table: PaperTable
) -> list[int]:
    """Return the places whose names include the wanted one."""
    key = _bare(wanted)
    found = [index for index, own in enumerate(names) if key and key in map(_bare, own)]
    if not found:
        where = f"{table.paper.label} Table {table.number}"
        raise ConfigError(f"{where} has no {what}; choose one of: {' | '.join(choices)}")
    return found


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
