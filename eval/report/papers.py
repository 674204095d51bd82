"""The papers' tables, as the page shows them."""

from collections.abc import Mapping, Sequence

from eval.commands.terminal import stage
from eval.results.stored_run import StoredRun
from eval.results.tables.layout import TableLine, lay_out
from eval.results.tables.model import PaperTable, TableCell, TableColumn
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import spec_names
from eval.results.tables.text import (
    LEGEND,
    PAIR_HEADINGS,
    PAIR_LEGEND,
    TextLine,
    dataset_labels,
    pair_cells,
    remarks,
    text_lines,
    title,
)
from memsys.vocabulary import Json


def tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Return all tables of all papers."""
    found = []
    for paper in spec_names():
        with stage(f"building the tables of {paper}"):
            found += [_table(table) for table in build_tables(paper, runs)[0]]
    return found


def _table(table: PaperTable) -> Json:
    page, datasets = lay_out(table), dataset_labels(table)
    columns = {id(cell): column for _, _, column, cell in table.cells}
    return {
        "id": f"{table.paper.paper}:{table.number}",
        "paper": table.paper.label,
        "title": title(table),
        "columns": list(page.headings),
        "blocks": [
            {"label": label, "rows": [_row(line, columns, datasets) for line in lines]} for label, lines in page.blocks
        ],
        # On the page the remark is below its line.
        "legend": [text.replace("the last column", "the line below") for text in LEGEND],
        "remarks": list(table.spec.remarks),
        "faults": remarks(table),
        "pairs": _pairs(table),
    }


def _row(line: TableLine, columns: Mapping[int, TableColumn], datasets: dict[str, str]) -> Json:
    return {
        "label": line.label,
        "measured": line.measured,
        "lines": [_text(text, line) for text in text_lines(line, datasets)],
        "behind": [_behind(cell, columns.get(id(cell))) for cell in line.cells],
    }


def _text(text: TextLine, line: TableLine) -> Json:
    marks = [cell.printed.marks if cell.printed else "" for cell in line.cells] if text.kind == "printed" else []
    return {"kind": text.kind, "cells": list(text.cells), "remark": text.remark, "marks": marks}


def _behind(cell: TableCell, column: TableColumn | None) -> Json:
    """Return the remark after a measured value; ``None`` where there is none."""
    if cell.measured is None or column is None:
        return None
    return {
        "runs": list(cell.measured.runs),
        "metric": column.metric,
        "questions": cell.measured.questions,
        "caveats": list(cell.measured.caveats) if cell.printed else [],
    }


def _pairs(table: PaperTable) -> Json:
    """Return the paired tests between the systems of a table."""
    rows = [[pair.where, *pair_cells(pair)] for pair in table.pairs]
    return {"headings": ["", *PAIR_HEADINGS], "rows": rows, "legend": list(PAIR_LEGEND)} if rows else None
