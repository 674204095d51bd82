"""Metric sensitivity on the terminal."""

from collections.abc import Sequence

from eval.audit.sensitivity.standings import Lens
from eval.audit.sensitivity.text import (
    LEGEND,
    heading,
    left_out,
    section_tables,
    short_names,
    summary,
    tally_table,
)
from eval.commands.rendering.terminal import show as show_table
from eval.commands.terminal import console


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
    for table in section_tables(lens, names):
        show_table(table)
    if len(lens.systems) > 1 and lens.tallies:
        show_table(tally_table(lens))
        wide.print(summary(lens), style="bold", highlight=False, markup=False)
