"""The papers' tables, as the page shows them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from eval.tables.__main__ import build_tables
from eval.tables.model import Cell, Column, Row, Table
from eval.tables.spec import FOLDER
from eval.tables.stored import StoredRun
from eval.tables.text import LEGEND, dataset_labels, lines, remarks, title
from memsys.vocabulary import Json


def paper_names(folder: Path = FOLDER) -> list[str]:
    """Papers with tables, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def tables(runs: Sequence[StoredRun]) -> list[Json]:
    """All tables of all papers."""
    return [_table(table) for paper in paper_names() for table in build_tables(paper, runs)[0]]


def _table(table: Table) -> Json:
    return {
        "id": f"{table.paper.paper}:{table.number}",
        "paper": table.paper.label,
        "title": title(table),
        "columns": [column.label for column in table.columns],
        "blocks": [
            {"label": block.label, "rows": [_row(row, table) for row in block.rows]}
            for block in table.blocks
            if block.rows
        ],
        "legend": [text.replace("the last column", "the line below") for text in LEGEND],
        "remarks": remarks(table),
    }


def _row(row: Row, table: Table) -> Json:
    return {
        "label": row.label,
        "measured": row.measured,
        "lines": [
            {
                "kind": line.kind,
                "cells": list(line.cells),
                "remark": line.remark,
                "marks": _marks(row.cells) if line.kind == "printed" else [],
            }
            for line in lines(row, table.columns, dataset_labels(table))
        ],
        "behind": [_behind(cell, column) for cell, column in zip(row.cells, table.columns, strict=True)],
    }


def _marks(cells: Iterable[Cell]) -> list[str]:
    return [cell.printed.marks if cell.printed else "" for cell in cells]


def _behind(cell: Cell, column: Column) -> Json:
    """What stands behind a measured value; ``None`` where there is none."""
    if cell.measured is None:
        return None
    return {
        "runs": list(cell.measured.runs),
        "metric": column.metric,
        "category": column.category,
        "questions": cell.measured.questions,
        "caveats": list(cell.measured.caveats) if cell.printed else [],
    }
