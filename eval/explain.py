"""Show the run behind a table's cell, and the questions it lost: ``memsys explain TABLE ROW COLUMN``."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from eval.commands.commands import add_runs_option, explains_errors, program, start
from eval.commands.escaping import one_line
from eval.commands.int_options import count
from eval.commands.terminal import console, say
from eval.results.explain.find import CellPlace, find_cells
from eval.results.explain.questions import read_questions, worst
from eval.results.explain.settings import differences
from eval.results.explain.show import cell_lines, further_lines, heading, question_lines, run_lines, setting_lines
from eval.results.frame import read_runs
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import mean_over_runs
from eval.results.tables.model import PaperTable
from eval.results.tables.paper_tables import build_tables
from eval.runs.folders import holds_texts, short_path, stored_folders
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and explain; returns the exit status."""
    options = _parser().parse_args(arguments)
    runs, _ = read_runs(options.runs or stored_folders())
    table = _table(options.table, runs)
    by_id = {run.run_id: run for run in runs}
    shown, further = _worth_showing(find_cells(table, options.row, options.column, options.block))
    for place in shown:
        _explain(place, by_id, options.worst)
    _print(further_lines(further))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("explain"),
        description="The run behind a cell of a table: commit, data, model, settings, and its worst questions.",
        epilog=f"example: {program('explain')} 3 RAG 'Temporal F1'",
    )
    parser.add_argument("table", metavar="TABLE", help="number of a table, or PAPER:NUMBER (default paper: clag)")
    parser.add_argument("row", metavar="ROW", help="row label, or name of the system")
    parser.add_argument("column", metavar="COLUMN", help="column label")
    parser.add_argument("--block", help="backbone or data set, where several blocks have the row")
    parser.add_argument("--worst", type=count(), default=3, metavar="N", help="questions shown (default: %(default)s)")
    add_runs_option(parser)
    return parser


def _table(name: str, runs: Sequence[StoredRun]) -> PaperTable:
    paper, _, number = name.rpartition(":")
    if not number.isdecimal():
        raise ConfigError(
            f"table {name!r}: write a number, or PAPER:NUMBER, e.g. 3 or clag:3; a run's questions are on the page "
            "of `memsys report --runs FOLDER`"
        )
    return build_tables(paper or "clag", runs, [int(number)])[0][0]


def _worth_showing(places: Sequence[CellPlace]) -> tuple[Sequence[CellPlace], Sequence[CellPlace]]:
    """Return the measured cells, or all where none was measured; those of the paper's blocks come first.

    Where nothing of the paper's blocks was measured, what it printed there comes first.
    """
    measured = [place for place in places if place.cell.measured is not None]
    papers = [place for place in measured if place.block.in_paper]
    others = [place for place in measured if not place.block.in_paper]
    if papers or not others:
        return papers or places, others
    return [*(place for place in places if place.block.in_paper), *others], []


def _explain(place: CellPlace, runs: Mapping[str, StoredRun], count: int) -> None:
    spec, cell = place.table.paper, place.cell
    protocol = load_protocol(spec.protocol)
    console().print(heading(place), style="bold", highlight=False, markup=False)
    _print(cell_lines(place, protocol.name))
    if cell.measured is None:
        return
    chosen = [runs[name] for name in cell.measured.runs]
    for run in chosen:
        _print(run_lines(run, short_path(run.path)))
        if not run.recorded:  # no setting was recorded with the answers
            _print(setting_lines(differences(run, cell.dataset, place.row.key.system, spec)))
    metric = cell.measured.metric
    lowest = worst(mean_over_runs(chosen, metric), metric, place.column.category, protocol, count)
    first = chosen[0].path
    whole = holds_texts(first)
    if lowest:
        where = "" if whole else " (only scores are at hand: the run directory, which has the texts, is not here)"
        seeds = f", scores over {len(chosen)} seeds, texts of the first" if len(chosen) > 1 else ""
        _print([f"worst questions{seeds}{where}:"])
    for asked in read_questions(first if whole else None, lowest):
        _print(question_lines(asked))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        say(one_line(line))


if __name__ == "__main__":
    start(main)
