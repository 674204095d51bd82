"""Putting a table together from printed numbers and runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eval.printed import PrintedNumber
from eval.protocols import Protocol
from eval.tables.candidates import Candidates, RowKey, choose
from eval.tables.measure import measure, scaled
from eval.tables.model import Block, Cell, Column, Row, Table
from eval.tables.spec import NO_BACKBONE, PaperSpec, TableSpec
from memsys.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block stands; ``dataset`` is empty where columns name the data set."""

    backbone: str
    dataset: str


@dataclass(frozen=True, slots=True)
class _Grid:
    """The printed table: its columns and places in order, its numbers, and its row labels."""

    spec: TableSpec
    columns: tuple[Column, ...]
    places: tuple[_Place, ...]
    numbers: Mapping[tuple[_Place, str, Column], PrintedNumber]
    labels: Mapping[tuple[_Place, str], str]

    @classmethod
    def of(cls, entries: Sequence[PrintedNumber], spec: TableSpec) -> "_Grid":
        numbers: dict[tuple[_Place, str, Column], PrintedNumber] = {}
        labels: dict[tuple[_Place, str], str] = {}
        for entry in entries:
            by_dataset = spec.block == "dataset"
            place = _Place(entry.backbone, entry.dataset if by_dataset else "")
            column = Column(entry.column, "" if by_dataset else entry.dataset, entry.metric, entry.category)
            numbers[place, entry.system, column] = entry
            labels.setdefault((place, entry.system), entry.row)
        columns = _unique(column for _, _, column in numbers)
        return cls(spec, columns, _unique(place for place, _ in labels), numbers, labels)

    def systems(self, place: _Place) -> tuple[str, ...]:
        """Systems that the paper prints in a block."""
        return tuple(system for where, system in self.labels if where == place)


class TableBuilder:
    """Builds the tables of one paper."""

    def __init__(
        self, paper: PaperSpec, protocol: Protocol, printed: Sequence[PrintedNumber], candidates: Candidates
    ) -> None:
        self._paper, self._protocol = paper, protocol
        self._printed, self._candidates = printed, candidates

    def build(self, number: int) -> Table:
        """Put one table together.

        Raises:
            ConfigError: the paper has no such table.
        """
        spec = self._paper.tables.get(number)
        entries = [entry for entry in self._printed if entry.table == number]
        if spec is None or not entries:
            known = ", ".join(str(table) for table in self._paper.tables)
            raise ConfigError(f"{self._paper.label} has no table {number} to rebuild; choose one of {known}")
        grid = _Grid.of(entries, spec)
        blocks = [self._block(place, grid) for place in (*grid.places, *self._further_places(grid))]
        return Table(self._paper, number, spec, grid.columns, tuple(block for block in blocks if block.rows))

    def _further_places(self, grid: _Grid) -> list[_Place]:
        """Blocks of backbones that the paper's table does not have, in the order of the spec."""
        if not grid.spec.further:
            return []
        found = {key.backbone for key in self._candidates} - {place.backbone for place in grid.places}
        order = [*self._paper.backbones, *sorted(found - set(self._paper.backbones))]
        datasets = _unique(place.dataset for place in grid.places)
        return [_Place(backbone, dataset) for dataset in datasets for backbone in order if backbone in found]

    def _block(self, place: _Place, grid: _Grid) -> Block:
        keys = [RowKey(place.backbone, system) for system in grid.systems(place)]
        if grid.spec.further:
            keys += self._further_keys(place.backbone, grid.systems(place))
        rows = [self._row(key, place, grid) for key in keys]
        shown = tuple(row for row in rows if row.printed or row.measured)
        return Block(self._block_label(place, grid), place.backbone, place.dataset, place in grid.places, shown)

    def _further_keys(self, backbone: str, known: Sequence[str]) -> list[RowKey]:
        """Rows of systems and variants that the paper's block does not have."""
        order = [*self._paper.further, *self._paper.systems]

        def rank(key: RowKey) -> tuple[int, str, str]:
            return (order.index(key.system) if key.system in order else len(order), key.system, key.variant)

        found = [key for key in self._candidates if key.backbone == backbone]
        return sorted((key for key in found if key.variant or key.system not in known), key=rank)

    def _row(self, key: RowKey, place: _Place, grid: _Grid) -> Row:
        label = grid.labels.get((place, key.system)) or self._paper.system_label(key.system)
        if key.variant:
            return Row(f"{label} [{key.variant}]", key, self._cells(key, place, grid, {}))
        printed = {column: grid.numbers.get((place, key.system, column)) for column in grid.columns}
        return Row(label, key, self._cells(key, place, grid, printed))

    def _cells(
        self, key: RowKey, place: _Place, grid: _Grid, printed: Mapping[Column, PrintedNumber | None]
    ) -> tuple[Cell, ...]:
        return tuple(
            self._cell(key, column, column.dataset or place.dataset, printed.get(column), grid.spec)
            for column in grid.columns
        )

    def _cell(self, key: RowKey, column: Column, dataset: str, printed: PrintedNumber | None, spec: TableSpec) -> Cell:
        runs = self._candidates.get(key, {}).get(dataset, ())
        selected = choose(runs, dataset, column.metric, self._paper)
        if isinstance(selected, str):
            return Cell(dataset, printed, None, selected)
        size = self._paper.datasets[dataset]
        found = measure(selected, column.metric, column.category, self._protocol, size, spec.hardware)
        if isinstance(found, str):
            return Cell(dataset, printed, None, found)
        return Cell(dataset, printed, scaled(found, self._paper.scale(column.metric)))

    def _block_label(self, place: _Place, grid: _Grid) -> str:
        label = self._paper.backbone_label(place.backbone)
        if place not in grid.places and place.backbone != NO_BACKBONE:
            label += " (not in the paper's table)"
        return f"{self._paper.datasets[place.dataset].label}, {label}" if place.dataset else label


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
