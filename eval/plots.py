"""Draw the papers' figures and our own: ``memsys plots``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import add_runs_option, explains_errors, program, start
from eval.commands.places import RESULTS, check_folder, tracked_remark
from eval.commands.terminal import console, say
from eval.results.drawing.draw import draw_sheet
from eval.results.drawing.figure_spec import Sheet
from eval.results.figures.funnel import funnel_sheets
from eval.results.figures.life_cycle import life_cycle_sheets
from eval.results.figures.own import groups, own_sheets
from eval.results.figures.source import Source, needed_tables, paper_sheets
from eval.results.frame import read_runs, say_left_out
from eval.results.papers.printed import load_printed
from eval.results.stored_run import StoredRun
from eval.results.tables.paper_tables import build_tables
from eval.runs.folders import chosen_folders
from eval.scoring.protocols import load_protocol
from memsys.errors import RunDirectoryError

OUT = RESULTS / "figures"


def sheets(runs: Sequence[StoredRun], protocol: str) -> list[Sheet]:
    """Make every figure.

    Args:
        runs: complete runs.
        protocol: name of the protocol of our own figures.

    Raises:
        ConfigError: unknown protocol.
    """
    needed = needed_tables()
    tables = {
        (paper, table.number): table
        for paper, numbers in needed.items()
        for table in build_tables(paper, runs, numbers)[0]
    }
    found = paper_sheets(Source(tables, {paper: load_printed(paper) for paper in needed}))
    chosen = load_protocol(protocol)
    comparable = groups(runs)
    own = [sheet for group in comparable for sheet in own_sheets(group, chosen)]
    return [*found, *own, *life_cycle_sheets(comparable, chosen), *funnel_sheets(runs)]


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and draw; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("plots"), description="Draw the papers' figures and our own, as SVG.")
    add_runs_option(parser)
    parser.add_argument("--protocol", default="clag", help="of our own figures (default: clag)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the figures (default: results/figures)")
    options = parser.parse_args(arguments)
    check_folder(options.out)
    load_protocol(options.protocol)
    runs, skipped = read_runs(chosen_folders(options.runs))
    say_left_out([f"{each.path}: {each.reason}" for each in skipped])
    if not runs and options.runs:
        raise RunDirectoryError("none of the runs that --runs names can be drawn")
    for sheet in sheets(runs, options.protocol):
        say(f"drawn: {draw_sheet(sheet, options.out)}")
    if tracked_remark(options.out):
        console().print(tracked_remark(options.out), highlight=False, markup=False)
    return 0


if __name__ == "__main__":
    start(main)
