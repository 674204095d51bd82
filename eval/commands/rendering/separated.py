"""Tables as CSV files for other programs: one header line, figures with four decimals, nothing where one is missing."""

import csv
import io

from eval.commands.escaping import csv_row
from eval.commands.rendering.table import Cell, Column, Table, text_of

#: Decimals of figures in the table's unit: enough to recompute a difference, too few to differ between machines.
DECIMALS = 4


def render_csv(table: Table) -> str:
    """Return headings and rows; labels of blocks are in a first column, title and notes are left out."""
    table = table.labelled()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(csv_row(column.heading for column in table.columns))
    for row in table.rows:
        writer.writerow(csv_row(map(_value, row, table.columns)))
    return text.getvalue()


def _value(cell: Cell, column: Column) -> object:
    if isinstance(cell, float):
        return f"{cell:.{DECIMALS}f}"
    if cell is None:
        return ""
    return cell if isinstance(cell, (str, int)) else text_of(cell, column)
