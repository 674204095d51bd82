"""Putting a table together from printed numbers and runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from eval.config.answer_prompts import AUTHORS
from eval.config.preset_settings import default_settings
from eval.config.presets import CONF
from eval.results.papers.printed import JUDGE, PrintedNumber, place_of
from eval.results.stored_run import NO_BACKBONE
from eval.results.tables.candidates import Candidates, RowKey, Selected, candidates_of, choose, recorded_judge
from eval.results.tables.comparability import other_terms
from eval.results.tables.counted import count_questions
from eval.results.tables.measure import Measured, MeasurementContext, mean_of, measure, scaled
from eval.results.tables.model import PaperTable, Row, TableBlock, TableCell, TableColumn
from eval.results.tables.pairs import Contestant, Pair, adjust_family, can_be_paired, compare_family
from eval.results.tables.spec import PaperSpec, TableSpec
from eval.results.tables.verdicts import compare_cell, load_margins
from eval.scoring.protocols import Protocol
from memsys.errors import ConfigError

T = TypeVar("T")

_NOT_MEASURED = "a count of the paper's own run: no other run could give it"
_NOT_BUILT = "this system is not built here"
#: Tells runs of a printed system from those with the authors' prompts, which are in its printed row.
_OURS = "our prompts"


@dataclass(frozen=True, slots=True)
class _BlockPlace:
    """Position of a block; ``dataset`` is empty where columns name the data set."""

    backbone: str
    dataset: str


@dataclass(frozen=True, slots=True)
class _Grid:
    """The printed table: its columns and places in order, its numbers, and the system behind each row label."""

    spec: TableSpec
    columns: tuple[TableColumn, ...]
    places: tuple[_BlockPlace, ...]
    numbers: Mapping[tuple[_BlockPlace, str, TableColumn], PrintedNumber]
    rows: Mapping[tuple[_BlockPlace, str], str]

    @classmethod
    def of(cls, entries: Sequence[PrintedNumber], spec: TableSpec) -> "_Grid":
        numbers: dict[tuple[_BlockPlace, str, TableColumn], PrintedNumber] = {}
        rows: dict[tuple[_BlockPlace, str], str] = {}
        for entry in entries:
            by_dataset = spec.block == "dataset"
            # What cannot be measured has a category or none from row to row, which makes no columns of its own.
            category = entry.category if spec.measured else None
            place = _BlockPlace(entry.backbone, entry.dataset if by_dataset else "")
            column = TableColumn(entry.column, "" if by_dataset else entry.dataset, entry.metric, category)
            numbers[place, entry.row, column] = entry
            rows.setdefault((place, entry.row), entry.system)
        columns = _unique(column for _, _, column in numbers)
        return cls(spec, columns, _unique(place for place, _ in rows), numbers, rows)

    def labels(self, place: _BlockPlace) -> tuple[str, ...]:
        """Return the rows that the paper prints in a block."""
        return tuple(label for where, label in self.rows if where == place)

    def systems(self, place: _BlockPlace) -> tuple[str, ...]:
        """Return the systems that the paper prints in a block."""
        return tuple(system for (where, _), system in self.rows.items() if where == place)


class TableBuilder:
    """Builds the tables of one paper."""

    def __init__(
        self,
        paper: PaperSpec,
        protocol: Protocol,
        printed: Sequence[PrintedNumber],
        candidates: Candidates,
        *,
        later: Mapping[str, Sequence[PrintedNumber]] = MappingProxyType({}),
        printed_alone: bool = False,
    ) -> None:
        self._later = {
            version: {place_of(number): number.text for number in numbers} for version, numbers in later.items()
        }
        self._paper, self._protocol, self._printed_alone = paper, protocol, printed_alone
        self._printed, self._candidates = printed, candidates
        self._other_terms: dict[tuple[str, str], tuple[str, ...]] = {}
        self._measurements: dict[tuple[tuple[str, ...], str, int | None, str, str], Measured | str] = {}
        self._selections: dict[tuple[RowKey, str, str], Selected | str] = {}

    def build(self, number: int) -> PaperTable:
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
        shown = tuple(block for block in blocks if block.rows)
        pairs = tuple(adjust_family([p for block in shown for p in self._pairs(block, grid)])) if spec.paired else ()
        return PaperTable(self._paper, number, spec, grid.columns, shown, pairs)

    def _further_places(self, grid: _Grid) -> list[_BlockPlace]:
        """Return the blocks of backbones that the paper's table does not have, in the order of the spec."""
        if not grid.spec.measured or self._printed_alone:
            return []
        if not grid.spec.further:
            return [_BlockPlace(NO_BACKBONE, dataset) for dataset in _unique(place.dataset for place in grid.places)]
        found = {key.backbone for key in self._candidates} - {place.backbone for place in grid.places}
        order = [*self._paper.backbones, *sorted(found - set(self._paper.backbones))]
        datasets = _unique(place.dataset for place in grid.places)
        return [_BlockPlace(backbone, dataset) for dataset in datasets for backbone in order if backbone in found]

    def _block(self, place: _BlockPlace, grid: _Grid) -> TableBlock:
        rows = [self._printed_row(label, place, grid) for label in grid.labels(place)]
        if grid.spec.measured and not self._printed_alone:
            rows += [self._further_row(key, place, grid) for key in self._further_keys(place, grid)]
        shown = tuple(row for row in rows if row.printed or row.measured)
        return TableBlock(self._block_label(place, grid), place.backbone, place.dataset, place in grid.places, shown)

    def _further_keys(self, place: _BlockPlace, grid: _Grid) -> list[RowKey]:
        """Return the rows that the paper's block does not have: systems, variants, and all floors and ceilings."""
        order = [*self._paper.further, *self._paper.systems]

        def rank(key: RowKey) -> tuple[int, str, str]:
            return (order.index(key.system) if key.system in order else len(order), key.system, key.variant)

        found = [
            key
            for key in self._candidates
            if key.backbone == place.backbone and (grid.spec.further or key.system in self._paper.further)
        ]
        printed = {self._standing(RowKey(place.backbone, system), place, grid) for system in grid.systems(place)}
        return sorted((key for key in found if key not in printed), key=rank)

    def _standing(self, key: RowKey, place: _BlockPlace, grid: _Grid) -> RowKey:
        """Return the runs that are in a printed row: those with the authors' prompts, unless ours cover more questions.

        They alone repeat what was printed; prompts change a score by more than most systems differ.
        """
        return self._better(key, {column.dataset or place.dataset for column in grid.columns})

    def _better(self, key: RowKey, shown: set[str]) -> RowKey:
        theirs = replace(key, variant=AUTHORS)
        covered = self._questions(theirs, shown)
        return theirs if covered and covered >= self._questions(key, shown) else key

    def _questions(self, key: RowKey, datasets: set[str]) -> int:
        """Return the questions that the largest runs of a row answered on some data sets."""
        found = self._candidates.get(key, {})
        return sum(max(len(run.rows) for run in found[dataset]) for dataset in datasets & found.keys())

    def _printed_row(self, label: str, place: _BlockPlace, grid: _Grid) -> Row:
        key = self._standing(RowKey(place.backbone, grid.rows[place, label]), place, grid)
        printed = {column: grid.numbers.get((place, label, column)) for column in grid.columns}
        cells = self._cells(key, place, grid, printed)
        return Row(label, key, tuple(replace(cell, later=self._later_of(cell.printed)) for cell in cells))

    def _later_of(self, printed: PrintedNumber | None) -> dict[str, str]:
        """Return what later versions of the paper print in the place of a number, by version."""
        if printed is None:
            return {}
        place = place_of(printed)
        return {version: numbers[place] for version, numbers in self._later.items() if place in numbers}

    def _further_row(self, key: RowKey, place: _BlockPlace, grid: _Grid) -> Row:
        label = next(
            (name for (where, name), system in grid.rows.items() if where == place and system == key.system),
            self._paper.system_label(key.system),
        )
        variant = key.variant or (_OURS if key.system in grid.systems(place) else "")
        return Row(f"{label} [{variant}]" if variant else label, key, self._cells(key, place, grid, {}))

    def _cells(
        self, key: RowKey, place: _BlockPlace, grid: _Grid, printed: Mapping[TableColumn, PrintedNumber | None]
    ) -> tuple[TableCell, ...]:
        return tuple(
            self._cell(key, column, column.dataset or place.dataset, printed.get(column), grid.spec)
            for column in grid.columns
        )

    def _cell(
        self, key: RowKey, column: TableColumn, dataset: str, printed: PrintedNumber | None, spec: TableSpec
    ) -> TableCell:
        if printed is not None and printed.row in spec.settings:
            return TableCell(
                dataset, printed, None, measurable=False, setting=_as_printed(printed, spec.settings[printed.row])
            )
        if not spec.measured:
            return self._counted(dataset, printed)
        if parts := self._paper.means.get(key.backbone):
            cells = [
                self._cell(self._better(replace(key, backbone=part), {dataset}), column, dataset, None, spec)
                for part in parts
            ]
            return self._mean(dataset, printed, cells, column.metric)
        metric = self._metric(key, column, dataset)
        selected = self._selected(key, dataset, metric)
        if isinstance(selected, str):
            return self._empty(key, dataset, printed, selected)
        found = self._measured(selected, metric, column.category, dataset, spec.hardware)
        if isinstance(found, str):
            return TableCell(dataset, printed, None, found)
        return self._filled(dataset, printed, found, column.metric)

    def _mean(self, dataset: str, printed: PrintedNumber | None, cells: Sequence[TableCell], metric: str) -> TableCell:
        """Return the plain mean of a row over several backbones, where each of them was measured."""
        found = [cell.measured for cell in cells if cell.measured is not None]
        if len(found) < len(cells):
            return TableCell(dataset, printed, None, f"{len(found)} of its {len(cells)} backbones were run")
        return self._judged(dataset, printed, mean_of(found), metric)

    def _selected(self, key: RowKey, dataset: str, metric: str) -> Selected | str:
        """Return the run for a metric of a row, which all cells of the metric share; see :func:`choose`."""
        wanted = (key, dataset, metric)
        if wanted not in self._selections:
            runs = candidates_of(self._candidates, key, dataset, metric)
            self._selections[wanted] = choose(runs, dataset, metric, self._paper)
        return self._selections[wanted]

    def _measured(
        self, selected: Selected, metric: str, category: int | None, dataset: str, hardware: str
    ) -> Measured | str:
        """Measure a cell, which several tables of a paper may have."""
        wanted = (selected.runs, metric, category, dataset, hardware)
        if wanted not in self._measurements:
            run, whole = selected.run, self._paper.datasets[dataset]
            if (run.run_id, dataset) not in self._other_terms:
                self._other_terms[run.run_id, dataset] = other_terms(run, dataset, self._paper)
            others = self._other_terms[run.run_id, dataset]
            terms = MeasurementContext(self._paper, self._protocol, whole, others, hardware)
            self._measurements[wanted] = measure(selected, metric, category, terms)
        return self._measurements[wanted]

    def _counted(self, dataset: str, printed: PrintedNumber | None) -> TableCell:
        """Return a cell of a table that no run measures: a count of questions, or nothing."""
        spec = self._paper.datasets.get(dataset)
        found = count_questions(self._candidates, printed, spec) if printed is not None and spec is not None else None
        if printed is None or found is None:
            return TableCell(dataset, printed, None, _NOT_MEASURED, measurable=False)
        return self._filled(dataset, printed, found, printed.metric)

    def _filled(self, dataset: str, printed: PrintedNumber | None, found: Measured, metric: str) -> TableCell:
        return self._judged(dataset, printed, scaled(found, self._paper.scale(metric)), metric)

    def _judged(self, dataset: str, printed: PrintedNumber | None, measured: Measured, metric: str) -> TableCell:
        """Return the cell of a value in the table's unit, compared with the printed one."""
        share = metric not in self._paper.plain_metrics
        return TableCell(dataset, printed, measured, equivalence=compare_cell(printed, measured, share, load_margins()))

    def _metric(self, key: RowKey, column: TableColumn, dataset: str) -> str:
        """Name of a column's scores; a judge's are the authors' own verdicts if there are no others."""
        metric = self._paper.metric_of(column.metric, key.backbone)
        if column.metric != JUDGE:
            return metric
        runs = candidates_of(self._candidates, key, dataset, metric)
        own = any(metric in row.metrics for run in runs for row in run.rows[:1])
        return metric if own else recorded_judge(run for run in runs if run.recorded) or metric

    def _empty(self, key: RowKey, dataset: str, printed: PrintedNumber | None, missing: str) -> TableCell:
        built = self._paper.is_built(key.system)
        return TableCell(dataset, printed, None, missing if built else _NOT_BUILT, fillable=built)

    def _block_label(self, place: _BlockPlace, grid: _Grid) -> str:
        label = self._paper.backbone_label(place.backbone) if place.backbone else ""
        if place not in grid.places and place.backbone != NO_BACKBONE:
            label += " (not in the paper's table)"
        return f"{self._paper.datasets[place.dataset].label}, {label}" if place.dataset else label

    def _pairs(self, block: TableBlock, grid: _Grid) -> list[Pair]:
        """Return the paper's own system against each other system of the block, column by column of overall values."""
        found = []
        for position, column in enumerate(grid.columns):
            if column.category is None and can_be_paired(column.metric):
                rows = [row for row in block.rows if row.cells[position].measured is not None]
                own = [row for row in rows if row.key.system == self._paper.own and row.key.variant in ("", AUTHORS)]
                others = [row for row in rows if row not in own[:1]]
                entrants = [
                    (self._contestant(one, position, column), self._contestant(other, position, column))
                    for one in own[:1]
                    for other in others
                ]
                found += compare_family(entrants, column.metric, self._protocol, block.label, column.heading)
        return found

    def _contestant(self, row: Row, position: int, column: TableColumn) -> Contestant:
        dataset = row.cells[position].dataset
        selected = self._selected(row.key, dataset, column.metric)
        return (
            Contestant(row.label, ())
            if isinstance(selected, str)
            else Contestant(row.label, selected.rows, selected.run)
        )


def _as_printed(printed: PrintedNumber, place: str) -> str:
    """Return whether a preset has a printed setting, and where: ``as printed: memory=clag n_init``.

    Raises:
        ConfigError: there is no such preset, or it has no number there.
    """
    preset, _, key = place.partition(" ")
    group, _, name = preset.partition("=")
    value = (default_settings(name, CONF / group) or {}).get(key)
    if not isinstance(value, int | float):
        raise ConfigError(f"table {printed.table}, settings, {printed.row}: {preset} has no number in {key!r}")
    same = float(value) == printed.value
    return f"{'as printed' if same else f'differs, {value}'}: {place}"


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
