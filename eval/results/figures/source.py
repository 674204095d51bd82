"""Data of the papers' figures: printed numbers, and measured ones where there are runs.

A paper's figures are made by ``eval/results/figures/papers/<paper>.py``.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from eval.config.answer_prompts import AUTHORS
from eval.results.drawing.figure_spec import Place, Sheet, exact
from eval.results.drawing.style import Point, point_of
from eval.results.figures import papers
from eval.results.papers.printed import TEXT, PrintedNumber
from eval.results.tables.model import PaperTable, TableCell

#: What the remark of a figure with measured values says of them.
HOLLOW = "Filled: printed. Hollow or hatched: measured, with its 95 % interval."


@dataclass(frozen=True, slots=True)
class Source:
    """Data of figures: tables by paper and number, and printed numbers by paper."""

    tables: Mapping[tuple[str, int], PaperTable]
    printed: Mapping[str, Sequence[PrintedNumber]]

    def printed_values(self, paper: str, table: int, column: str, backbone: str = "") -> dict[Place, Point]:
        """Return the printed values of a column by row."""
        return {
            row: exact(cell.printed.value)
            for row, cell in _column(self.tables[paper, table], column, backbone)
            if cell.printed is not None
        }

    def measured_values(self, paper: str, table: int, column: str, backbone: str = "") -> dict[Place, Point]:
        """Return the measured values of a column by row."""
        return {
            row: point_of(cell.measured.value, cell.measured.shown_interval)
            for row, cell in _column(self.tables[paper, table], column, backbone)
            if cell.measured is not None and cell.printed is not None
        }

    def measured_systems(self, paper: str, table: int, column: str, backbone: str) -> dict[str, Point]:
        """Return the measured values of a column by system, whether the paper prints its row or not.

        Of the rows of a system with its own settings: the one on most questions, of these the one with the authors'
        prompts.
        """
        cells = [
            (row.key, cell.measured)
            for block, row, heading, cell in self.tables[paper, table].cells
            if heading.label == column and block.backbone == backbone and row.key.variant in ("", AUTHORS)
        ]
        found = [(one.questions, key.variant == AUTHORS, key.system, one) for key, one in cells if one is not None]
        ordered = sorted(found, key=lambda entry: entry[:3])
        return {system: point_of(one.value, one.shown_interval) for *_, system, one in ordered}

    def systems(self, paper: str, table: int) -> dict[str, str]:
        """Return the system of each printed row of a table, by the row's label."""
        rows = [row for block in self.tables[paper, table].blocks for row in block.rows]
        return {row.label: row.key.system for row in rows if row.printed}

    def text(self, paper: str, **wanted: object) -> list[PrintedNumber]:
        """Return the numbers that a paper prints outside its tables."""
        return [
            number
            for number in self.printed[paper]
            if number.table == TEXT and all(getattr(number, name) == value for name, value in wanted.items())
        ]


def _column(table: PaperTable, column: str, backbone: str) -> list[tuple[str, TableCell]]:
    return [
        (row.label, cell)
        for block, row, heading, cell in table.cells
        if heading.label == column and block.in_paper and backbone in ("", block.backbone)
    ]


def figure_modules() -> dict[str, ModuleType]:
    """Return the module of every paper that has figures, by paper, sorted."""
    found = sorted(entry.name for entry in pkgutil.iter_modules(papers.__path__))
    return {paper: importlib.import_module(f"{papers.__name__}.{paper}") for paper in found}


def needed_tables() -> dict[str, tuple[int, ...]]:
    """Return the numbers of the tables that the figures need, by paper."""
    return {paper: tuple(module.NEEDED) for paper, module in figure_modules().items()}


def paper_sheets(source: Source) -> list[Sheet]:
    """Make the figures of all papers."""
    return [sheet for module in figure_modules().values() for sheet in module.sheets(source)]
