"""Tables that are not a paper's: headings and rows of text, and how they stand in Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.commands.escaping import markdown, markdown_cell, markdown_row

#: Stands where a run does not have a figure.
DASH = "–"


@dataclass(frozen=True, slots=True)
class PlainTable:
    """One table.

    Attributes:
        title: its caption.
        headings: of the columns.
        rows: texts, as many as headings.
        notes: below it.
        left: columns from the left that hold words and are set to the left.
    """

    title: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    left: int = 1


def figure(value: float | None, digits: int = 1) -> str:
    """A number as it stands in a cell; a dash for none."""
    return DASH if value is None else f"{value:,.{digits}f}"


def plain_markdown(table: PlainTable, heading: str) -> list[str]:
    """Lines of a table with a heading in Markdown and its notes."""
    align = ["---" if number < table.left else "---:" for number in range(len(table.headings))]
    lines = [heading, "", markdown_row(table.headings), markdown_row(align)]
    lines += [markdown_row([markdown_cell(cell) for cell in row]) for row in table.rows]
    return [*lines, *(["", *(f"- {markdown(note)}" for note in table.notes)] if table.notes else []), ""]
