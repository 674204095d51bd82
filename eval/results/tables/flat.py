"""A paper's table as records: one row per cell with everything known about it, for other programs."""

from eval.commands.rendering.table import Table, records
from eval.results.tables.model import PaperTable, Row, TableBlock, TableCell, TableColumn

COLUMNS = (
    "paper", "table", "block", "backbone", "dataset", "row", "system", "variant", "column", "metric", "category",
    "protocol", "printed", "marks", "measured", "low", "high", "interval_by", "interval_units", "difference", "margin",
    "bound_low", "bound_high", "p_equivalence", "seeds_needed", "repeats_exactly", "recorded", "detectable", "verdict",
    "questions", "conversations", "conversations_of", "seeds", "not_compared", "missing", "setting", "note", "runs",
)  # fmt: skip


def cell_records(table: PaperTable) -> Table:
    """Return one row per cell; what was not measured is empty."""
    return records(
        COLUMNS,
        (
            _place(table, block, row, column, cell) | _printed(cell) | _measured(table, cell)
            for block, row, column, cell in table.cells
        ),
    )


def _place(table: PaperTable, block: TableBlock, row: Row, column: TableColumn, cell: TableCell) -> dict[str, object]:
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
        "category": column.category,
        "protocol": table.paper.protocol,
    }


def _printed(cell: TableCell) -> dict[str, object]:
    if cell.printed is None:
        return {}
    return {
        "printed": cell.printed.text,
        "marks": cell.printed.marks,
        "note": cell.printed.note,
        "setting": cell.setting,
        "verdict": cell.verdict,
    }


def _measured(table: PaperTable, cell: TableCell) -> dict[str, object]:
    measured = cell.measured
    if measured is None:
        return {"missing": cell.missing}
    found: dict[str, object] = {
        "measured": measured.value,
        "questions": measured.questions,
        "conversations": len(measured.conversations),
        "conversations_of": table.paper.datasets[cell.dataset].conversations,
        "seeds": " ".join(map(str, measured.seeds)),
        "not_compared": "; ".join(measured.caveats),
        "runs": " ".join(measured.runs),
    }
    if measured.interval is not None:
        found |= {
            "low": measured.interval.low,
            "high": measured.interval.high,
            "interval_by": measured.interval.by,
            "interval_units": measured.interval.units,
        }
    if measured.detectable is not None:
        found["detectable"] = measured.detectable
    return found | {"repeats_exactly": measured.repeats_exactly, "recorded": measured.recorded} | _equivalence(cell)


def _equivalence(cell: TableCell) -> dict[str, object]:
    test = cell.equivalence
    if test is None:
        return {}
    return {
        "difference": test.difference,
        "margin": test.margin,
        "bound_low": test.low,
        "bound_high": test.high,
        "p_equivalence": test.p_value,
        "seeds_needed": test.needed,
    }
