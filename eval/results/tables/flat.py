"""Tables as CSV: one row per cell with everything known about it, for other programs."""

import csv
import io

from eval.commands.escaping import csv_cell
from eval.results.tables.model import Row, Table, TableBlock, TableCell, TableColumn

COLUMNS = (
    "paper", "table", "block", "backbone", "dataset", "row", "system", "variant", "column", "metric", "category",
    "protocol", "printed", "marks", "measured", "low", "high", "interval_by", "interval_units", "difference", "margin",
    "bound_low", "bound_high", "p_equivalence", "seeds_needed", "repeats_exactly", "recorded", "detectable", "verdict",
    "questions", "conversations", "conversations_of", "seeds", "not_compared", "missing", "note", "runs",
)  # fmt: skip

#: Decimals of figures in the table's unit: enough to recompute a difference, too few to differ between machines.
CSV_DECIMALS = 4


def render_csv(table: Table) -> str:
    """Return one row per cell; what was not measured is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for block, row, column, cell in table.cells:
        found = _place(table, block, row, column, cell) | _printed(cell) | _measured(table, cell)
        writer.writerow({name: csv_cell(value) for name, value in found.items()})
    return text.getvalue()


def _place(table: Table, block: TableBlock, row: Row, column: TableColumn, cell: TableCell) -> dict[str, object]:
    return {
        "paper": table.paper.paper,
        "table": table.number,
        "block": block.label,
        "backbone": block.backbone,
        "dataset": cell.dataset,
        "row": row.label,
        "system": row.key.system,
        "variant": row.key.variant,
        "column": column.label,
        "metric": column.metric,
        "category": "" if column.category is None else column.category,
        "protocol": table.paper.protocol,
    }


def _printed(cell: TableCell) -> dict[str, object]:
    if cell.printed is None:
        return {}
    return {
        "printed": cell.printed.text,
        "marks": cell.printed.marks,
        "note": cell.printed.note,
        "verdict": cell.verdict,
    }


def _measured(table: Table, cell: TableCell) -> dict[str, object]:
    measured = cell.measured
    if measured is None:
        return {"missing": cell.missing}
    found: dict[str, object] = {
        "measured": _figure(measured.value),
        "questions": measured.questions,
        "conversations": len(measured.conversations),
        "conversations_of": table.paper.datasets[cell.dataset].conversations,
        "seeds": " ".join(map(str, measured.seeds)),
        "not_compared": "; ".join(measured.caveats),
        "runs": " ".join(measured.runs),
    }
    if measured.interval is not None:
        found |= {
            "low": _figure(measured.interval.low),
            "high": _figure(measured.interval.high),
            "interval_by": measured.interval.by,
            "interval_units": measured.interval.units,
        }
    if measured.detectable is not None:
        found["detectable"] = _figure(measured.detectable)
    return found | {"repeats_exactly": measured.repeats_exactly, "recorded": measured.recorded} | _equivalence(cell)


def _equivalence(cell: TableCell) -> dict[str, object]:
    test = cell.equivalence
    if test is None:
        return {}
    bounds = {"bound_low": test.low, "bound_high": test.high, "p_equivalence": test.p_value}
    return {
        "difference": _figure(test.difference),
        "margin": _figure(test.margin),
        **{name: "" if value is None else _figure(value) for name, value in bounds.items()},
        "seeds_needed": "" if test.needed is None else test.needed,
    }


def csv_value(value: object) -> object:
    """Return a value as it stands in a CSV file: figures to :data:`CSV_DECIMALS`, what is missing as nothing."""
    return _figure(value) if isinstance(value, float) else "" if value is None else value


def _figure(value: float) -> str:
    return f"{value:.{CSV_DECIMALS}f}"
