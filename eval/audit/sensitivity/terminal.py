"""The lens on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval.audit.sensitivity.standings import Lens
from eval.audit.sensitivity.text import (
    LEGEND,
    TALLY_HEADINGS,
    heading,
    left_out,
    line_cells,
    short_names,
    summary,
    tally_rows,
)
from eval.commands.terminal import console
from eval.commands.terminal_tables import show_table

if TYPE_CHECKING:
    from rich.table import Table


def show(lenses: Sequence[Lens]) -> None:
    """Print every data set's lens."""
    for lens in lenses:
        _show(lens)
    for line in LEGEND:
        console().print(line, style="dim", highlight=False, markup=False)


def _show(lens: Lens) -> None:
    names = short_names(lens.systems)
    wide = console()
    wide.print(heading(lens), style="bold", highlight=False, markup=False)
    for name, label in zip(names, lens.systems, strict=True):
        if name != label:
            wide.print(f"{name}: {label}", highlight=False, markup=False)
    if left_out(lens):
        wide.print(left_out(lens), highlight=False, markup=False)
    for title, lines in lens.sections.items():
        table = _table(title, ("reading", "n", *names, "order"))
        for line in lines:
            table.add_row(*line_cells(line, lines[0]))
        show_table(table)
    if len(lens.systems) > 1 and lens.tallies:
        table = _table(
            f"All {lens.readings} readings: definitions of F1, questions without an answer, means", TALLY_HEADINGS
        )
        for row in tally_rows(lens):
            table.add_row(*row)
        show_table(table)
        wide.print(summary(lens), style="bold", highlight=False, markup=False)


def _table(title: str, headings: Sequence[str]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(headings):
        table.add_column(name, justify="right" if 0 < number < len(headings) - 1 else "left", no_wrap=True)
    return table
