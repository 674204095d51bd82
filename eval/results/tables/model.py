"""Model of a table: blocks of rows of cells, each with printed and measured value, or the reason for a gap."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from eval.metrics.registry import matching
from eval.results.papers.printed import PrintedNumber
from eval.results.tables.candidates import RowKey
from eval.results.tables.measure import Measured
from eval.results.tables.pairs import Pair
from eval.results.tables.spec import PaperSpec, TableSpec
from eval.scoring.equivalence import Equivalence

Verdict = Literal[
    "reproduced", "not reproduced", "cannot say", "not comparable", "not run", "cannot be filled", "setting"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: label as printed, and what it shows. ``dataset`` is empty where the block names the data set."""

    label: str
    dataset: str
    metric: str
    category: int | None

    @property
    def heading(self) -> str:
        """The label with what tells it from a column of another definition: how evidence is matched."""
        how = matching(self.metric)
        return f"{self.label} ({how})" if how else self.label


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell.

    Attributes:
        dataset: where it was, or would be, measured.
        printed: the paper's number, if it has one here.
        measured: ours.
        missing: why there is no measured value.
        measurable: false where no run could give one.
        equivalence: the test of the measured against the printed number; ``None`` where they may not be compared.
        fillable: false where ``missing`` tells why no run that can be made here fills it.
        later: what later versions of the paper print here, by version.
        setting: of a printed setting, whether a preset has the same value, and where; no run is in such a cell.
    """

    dataset: str
    printed: PrintedNumber | None
    measured: Measured | None
    missing: str = ""
    measurable: bool = True
    equivalence: Equivalence | None = None
    fillable: bool = True
    later: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""

    @property
    def comparable(self) -> bool:
        """Whether printed and measured number may be compared."""
        return self.printed is not None and self.measured is not None and not self.measured.caveats

    @property
    def difference(self) -> float | None:
        """Measured minus printed, ``None`` when they may not be compared."""
        if self.printed is None or self.measured is None or self.measured.caveats:
            return None
        return self.measured.value - self.printed.value

    @property
    def verdict(self) -> Verdict | None:
        """Whether the printed number reproduces on these questions; ``None`` where nothing was printed."""
        if self.printed is None:
            return None
        if self.setting:
            return "setting"
        if self.measured is None:
            return "not run" if self.fillable and self.measurable else "cannot be filled"
        return "not comparable" if self.equivalence is None else self.equivalence.answer


@dataclass(frozen=True, slots=True)
class Row:
    """One system in one block."""

    label: str
    key: RowKey
    cells: tuple[TableCell, ...]

    @property
    def printed(self) -> bool:
        """Whether the paper has this row."""
        return any(cell.printed is not None for cell in self.cells)

    @property
    def measured(self) -> bool:
        """Whether any cell was measured."""
        return any(cell.measured is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows that share a backbone, or a data set and a backbone."""

    label: str
    backbone: str
    dataset: str
    in_paper: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of one paper."""

    paper: PaperSpec
    number: int
    spec: TableSpec
    columns: tuple[TableColumn, ...]
    blocks: tuple[TableBlock, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def cells(self) -> list[tuple[TableBlock, Row, TableColumn, TableCell]]:
        """All cells with where they are."""
        return [
            (block, row, column, cell)
            for block in self.blocks
            for row in block.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
        ]
