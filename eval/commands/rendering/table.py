"""Model of a table for every format: columns, rows of cells, labels of blocks, notes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

#: Written where there is no value.
DASH = "–"
#: Types of what a cell holds as it is.
_PLAIN = (str, int, float, type(None))

Style: TypeAlias = Literal["", "bold", "underline", "code", "superscript"]


@dataclass(frozen=True, slots=True)
class Span:
    """Text of a cell, or a part of it, with how it is set.

    Attributes:
        text: what is read.
        style: how it is set; CSV files and, of code and superscripts, terminals show the text alone.
        link: address that Markdown links the text to.
        note: footnote of the text, which is numbered and written below the table; equal ones share a number.
        colour: rich style, which terminals alone show.
    """

    text: str
    style: Style = ""
    link: str = ""
    note: str = ""
    colour: str = ""


#: Texts, figures (rounded to their column's digits), a value that is missing, or text in several parts.
Cell: TypeAlias = str | int | float | Span | tuple[Span | str, ...] | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: its heading, with the unit.
        align: ``left`` for texts, which may wrap; figures never do.
        digits: decimals of its figures; CSV files have more, see :mod:`eval.commands.rendering.separated`.
        key: it says what a row is about, and each part of a table that is too wide begins with it.
        together: it stays next to the column before it where a table is parted.
        style: rich style, which terminals alone show.
    """

    heading: str
    align: Literal["left", "right"] = "right"
    digits: int = 1
    key: bool = False
    together: bool = False
    style: str = ""


def columns(headings: Iterable[str], left: int = 1, digits: int = 1) -> tuple[Column, ...]:
    """Return columns of which the first ``left`` are texts that say what a row is about, the others figures."""
    return tuple(
        Column(heading, "left", key=True) if place < left else Column(heading, digits=digits)
        for place, heading in enumerate(headings)
    )


def texts(headings: Iterable[str]) -> tuple[Column, ...]:
    """Return columns of texts, of which the first says what a row is about."""
    return tuple(Column(heading, "left", key=not place) for place, heading in enumerate(headings))


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: heading or caption; may be empty.
        columns: in their order.
        rows: cells, as many as columns.
        notes: sentences below it.
        blocks: number of the first row of a block -> label of the block.
        label: LaTeX label behind ``tab:``.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    blocks: Mapping[int, str] = field(default_factory=dict)
    label: str = ""

    def numbered(self) -> "Table":
        """Return the table with its footnotes as numbers behind their texts and as notes below the others."""
        numbers: dict[str, int] = {}
        rows = [[_numbered(cell, numbers) for cell in row] for row in self.rows]
        return replace(
            self, rows=rows, notes=[*self.notes, *(f"({number}) {note}" for note, number in numbers.items())]
        )

    def labelled(self) -> "Table":
        """Return the table with the labels of its blocks in a first column; itself if there are none."""
        if not self.blocks:
            return self
        rows = [[self.blocks.get(place, ""), *row] for place, row in enumerate(self.rows)]
        return replace(self, columns=[Column("", "left", key=True), *self.columns], rows=rows, blocks={})

    def parts(self, widths: Sequence[int], width: float, gap: float, least: int = 0) -> "list[Table]":
        """Return the table, or several of all rows and some columns each that are narrow enough.

        Args:
            widths: of each column, characters.
            width: what a part has, characters; a group of columns that needs more makes a part all the same.
            gap: characters between two columns.
            least: characters that a key column is narrowed to where a group of columns needs the others.
        """
        keys = [place for place, column in enumerate(self.columns) if column.key]
        groups = _groups(self.columns)
        wanted = [sum(widths[place] + gap for place in group) for group in groups]
        between = gap * (len(keys) - 1)
        first = min(
            sum(widths[place] for place in keys) + between,
            max(width - max(wanted, default=0), least * len(keys) + between),
        )
        packed = [[place for one in part for place in groups[one]] for part in _packed(wanted, width - first)]
        return [self.of_columns([*keys, *part]) for part in packed]

    def filled(self) -> "Table":
        """Return the table without the columns that have no value in any row."""
        places = range(len(self.columns))
        return self.of_columns(
            [place for place in places if self.columns[place].key or any(row[place] is not None for row in self.rows)]
        )

    def of_columns(self, chosen: Sequence[int]) -> "Table":
        """Return the table with some of its columns."""
        return replace(
            self,
            columns=[self.columns[place] for place in chosen],
            rows=[[row[place] for place in chosen] for row in self.rows],
        )


def table_of(title: str, shown: Sequence[tuple[Column, Sequence[Cell]]]) -> Table:
    """Return a table from its columns, each with its cells."""
    return Table(title, [column for column, _ in shown], list(zip(*(cells for _, cells in shown), strict=True)))


def records(names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Table:
    """Return values by name as a table for a CSV file; what a row does not name is missing.

    Raises:
        KeyError: a row has a value that no column is named after.
    """
    return Table("", columns(names), [_record(names, row) for row in rows])


def _record(names: Sequence[str], row: Mapping[str, object]) -> list[Cell]:
    if unknown := row.keys() - set(names):
        raise KeyError(f"no column is named {', '.join(sorted(unknown))}")
    return [value if isinstance(value := row.get(name), _PLAIN) else str(value) for name in names]


def figure(value: float | None, digits: int = 1) -> str:
    """Return a number as tables show it, with commas between thousands; a dash for none."""
    return DASH if value is None else f"{value:,.{digits}f}"


def spans(cell: Cell, column: Column) -> tuple[Span, ...]:
    """Return what a cell shows, in parts that are set alike."""
    if isinstance(cell, tuple):
        return tuple(part if isinstance(part, Span) else Span(part) for part in cell)
    if isinstance(cell, Span):
        return (cell,)
    if isinstance(cell, float) or cell is None:
        return (Span(figure(cell, column.digits)),)
    return (Span(str(cell)),)


def text_of(cell: Cell, column: Column) -> str:
    """Return what a cell shows, as plain text."""
    return "".join(span.text for span in spans(cell, column))


def _numbered(cell: Cell, numbers: dict[str, int]) -> Cell:
    if isinstance(cell, Span) and cell.note:
        number = numbers.setdefault(cell.note, len(numbers) + 1)
        return replace(cell, text=f"{cell.text} ({number})", note="")
    return cell


def _groups(shown: Sequence[Column]) -> list[list[int]]:
    """Return the places of the columns that are no keys, those that stay next to each other in one group."""
    groups: list[list[int]] = []
    for place, column in enumerate(shown):
        if column.key:
            continue
        if column.together and groups:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _packed(sizes: Sequence[float], free: float) -> list[list[int]]:
    """Return the places of sizes in parts that each have room, in order; at least one, and one for a size too large."""
    parts: list[list[int]] = [[]]
    used = 0.0
    for place, size in enumerate(sizes):
        if parts[-1] and used + size > free:
            parts.append([])
            used = 0.0
        parts[-1].append(place)
        used += size
    return parts
