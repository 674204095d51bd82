"""All tables of one paper, with the runs that no cell takes."""

from collections.abc import Sequence

from eval.commands.terminal import stage
from eval.results.papers.printed import later_versions, load_printed
from eval.results.stored_run import StoredRun
from eval.results.tables.build import TableBuilder
from eval.results.tables.candidates import group_runs
from eval.results.tables.model import PaperTable
from eval.results.tables.spec import load_spec
from eval.scoring.protocols import load_protocol


def build_tables(
    paper: str, runs: Sequence[StoredRun], numbers: Sequence[int] | None = None, *, printed_alone: bool = False
) -> tuple[list[PaperTable], dict[str, str]]:
    """Build tables of a paper.

    Args:
        paper: name in ``eval/results/tables/specs``.
        runs: complete runs.
        numbers: of the tables; ``None`` for all.
        printed_alone: leave out the rows of systems and backbones that the paper does not print.

    Returns:
        The tables, and why runs are in none of them, by run id.
    """
    spec = load_spec(paper)
    candidates, unused = group_runs(runs, spec)
    protocol, printed = load_protocol(spec.protocol), load_printed(paper)
    later = later_versions(paper)
    builder = TableBuilder(spec, protocol, printed, candidates, later=later, printed_alone=printed_alone)
    tables = []
    for number in numbers or spec.tables:
        with stage(f"{paper}: table {number}"):
            tables.append(builder.build(number))
    return tables, unused
