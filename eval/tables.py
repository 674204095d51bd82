"""Print and write the papers' tables, printed and measured side by side: ``memsys tables``."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eval.commands.commands import add_runs_option, explains_errors, program, start
from eval.commands.places import RESULTS, check_folder, tracked_remark
from eval.commands.terminal import console, stage
from eval.commands.terminal_tables import show_table
from eval.commands.whole_numbers import count
from eval.results.compare.roles import FORMATS as ROLES_FORMATS
from eval.results.compare.roles import NAME as ROLES
from eval.results.compare.roles import role_groups
from eval.results.evidence.report import FORMATS as QUALITY_FORMATS
from eval.results.evidence.report import NAME as QUALITY
from eval.results.evidence.report import quality_groups
from eval.results.evidence.systems import FORMATS as SYSTEMS_FORMATS
from eval.results.evidence.systems import NAME as SYSTEMS
from eval.results.evidence.updates import FORMATS as UPDATES_FORMATS
from eval.results.evidence.updates import NAME as UPDATES
from eval.results.evidence.updates import update_groups
from eval.results.papers.departures import load_departures, render_departures
from eval.results.papers.faults import check_all, render_faults
from eval.results.papers.printed import load_printed
from eval.results.tables.cost_page import render_costs
from eval.results.tables.costs import COSTS, load_costs
from eval.results.tables.flat import render_csv
from eval.results.tables.label_view import all_under_labels
from eval.results.tables.latex import render_latex
from eval.results.tables.markdown import render_markdown
from eval.results.tables.methods import FORMATS as METHODS_FORMATS
from eval.results.tables.methods import NAME as METHODS
from eval.results.tables.methods import method_groups
from eval.results.tables.model import Table
from eval.results.tables.overview import CLAIMS, INDEX, render_claims, render_index
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import load_spec, spec_names
from eval.results.tables.stored import StoredRun, read_runs
from eval.runs.files import write_atomic
from eval.runs.folders import chosen_folders, short_path
from eval.scoring.labels import VIEW_HELP, LabelView, check_view
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

G = TypeVar("G")

OUT = RESULTS / "tables"
#: Tables under another view of disputed labels lie in a folder of its name.
OTHER_VIEWS = RESULTS / "label_views"
FAULTS = "averages_that_do_not_follow.md"
DEPARTURES = "departures.md"
_OVERVIEW_LEGEND = (
    "numbers the paper prints; of them measured on the same terms; of these reproduced; "
    "measured on a part or on other terms; not measured; measured numbers that the paper does not print"
)
_FORMATS = {"md": render_markdown, "csv": render_csv, "tex": render_latex}


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the tables; returns the exit status."""
    options = _parser().parse_args(arguments)
    check_view(options.labels)
    out = options.out or (OUT if options.labels == "printed" else OTHER_VIEWS / options.labels)
    check_folder(out)
    papers = options.paper or _papers_with(options.table)
    _check_tables(papers, options.table or ())
    with stage("reading the runs"):
        runs = _runs(chosen_folders(options.runs), options.labels)
    _run(papers, options.table, runs, out)
    if tracked_remark(out):
        console().print(tracked_remark(out), highlight=False, markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("tables"),
        description="Write a paper's tables: printed number, measured number, difference, interval, what is missing.",
    )
    parser.add_argument(
        "--paper",
        action="append",
        help="paper in eval/results/tables/specs; repeatable (default: all that have the tables)",
    )
    parser.add_argument("--table", type=count(1), action="append", help="number of a table; repeatable (default: all)")
    add_runs_option(parser)
    parser.add_argument("--labels", default="printed", help=f"{VIEW_HELP} (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, help="folder of the written tables (default: results/tables; results/label_views/LABELS)"
    )
    return parser


def _papers_with(numbers: Sequence[int] | None) -> Sequence[str]:
    """Return the papers that have all these tables; all papers where none has, so that the error lists the tables."""
    found = [paper for paper in spec_names() if load_spec(paper).tables.keys() >= set(numbers or ())]
    return found or spec_names()


def _check_tables(papers: Sequence[str], numbers: Sequence[int]) -> None:
    """Refuse papers and tables that there are not, and printed numbers that are wrong, before the runs are read.

    Raises:
        ConfigError: names the paper, the number, and the tables there are.
        DataError: names the file of printed numbers and the line.
    """
    for paper in papers:
        spec = load_spec(paper)
        load_printed(paper)
        unknown = [number for number in numbers if number not in spec.tables]
        if unknown:
            known = ", ".join(map(str, spec.tables))
            raise ConfigError(f"{spec.label} has no table {unknown[0]} to rebuild; choose one of {known}")


def _runs(folders: Sequence[Path], labels: LabelView) -> list[StoredRun]:
    """Return the runs under a view of disputed labels; report those that cannot be shown."""
    runs, skipped = read_runs(folders)
    runs, reasons = all_under_labels(runs, labels)
    for reason in [*(f"{short_path(run.path)}: {run.reason}" for run in skipped), *reasons]:
        console().print(f"left out: {reason}", style="yellow", highlight=False, markup=False)
    return runs


def _run(papers: Sequence[str], numbers: Sequence[int] | None, runs: Sequence[StoredRun], out: Path) -> None:
    built = []
    for paper in papers:
        with stage(f"building the tables of {paper}"):
            built.append(build_tables(paper, runs, numbers))
    for tables, unused in built:
        for table in tables:
            write_table(table, out)
        console().print(f"{tables[0].paper.label}: tables in {short_path(out)}", highlight=False, markup=False)
        show_table(_overview(tables))
        _report_unused(unused)
    if numbers is None and set(papers) == set(spec_names()):
        whole = {paper: tables for paper, (tables, _) in zip(papers, built, strict=True)}
        write_atomic(out / INDEX, render_index(whole).encode())
        write_atomic(out / CLAIMS, render_claims(whole).encode())
        _write_own(runs, out)
    write_atomic(out / FAULTS, render_faults(check_all()).encode())
    write_atomic(out / DEPARTURES, render_departures(load_departures()).encode())
    write_atomic(out / COSTS, render_costs(load_costs(), runs).encode())
    console().print(_OVERVIEW_LEGEND, style="dim", highlight=False)


def _write_own(runs: Sequence[StoredRun], out: Path) -> None:
    """Write the tables of our own, in every format."""
    published = [run for run in runs if not run.of_sample]  # as in the papers' tables
    quality = quality_groups(published)
    _write_formats(out, SYSTEMS, SYSTEMS_FORMATS, quality)
    _write_formats(out, QUALITY, QUALITY_FORMATS, quality)
    _write_formats(out, METHODS, METHODS_FORMATS, method_groups(published))
    _write_formats(out, ROLES, ROLES_FORMATS, role_groups(published))
    _write_formats(out, UPDATES, UPDATES_FORMATS, update_groups(quality))


def _write_formats(
    out: Path, name: str, formats: Mapping[str, Callable[[Sequence[G]], str]], groups: Sequence[G]
) -> None:
    for suffix, render in formats.items():
        write_atomic(out / f"{name}.{suffix}", render(groups).encode())


def write_table(table: Table, out: Path) -> None:
    """Write one table in every format."""
    for suffix, render in _FORMATS.items():
        path = out / f"{table.paper.paper}_table{table.number:02d}.{suffix}"
        write_atomic(path, render(table).encode())


def _overview(tables: Sequence[Table]) -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    shown.add_column("table")
    for heading in ("printed", "measured", "reproduced", "part", "missing", "extra"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for table in tables:
        cells = [cell for _, _, _, cell in table.cells]
        printed = [cell for cell in cells if cell.printed is not None]
        compared = [cell for cell in printed if cell.comparable]
        figures = (
            len(printed),
            len(compared),
            sum(cell.verdict == "reproduced" for cell in compared),
            sum(cell.measured is not None and not cell.comparable for cell in printed),
            sum(cell.measured is None for cell in printed),
            sum(cell.measured is not None and cell.printed is None for cell in cells),
        )
        shown.add_row(f"{table.number:>2} {table.spec.title}", *map(str, figures))
    return shown


def _report_unused(unused: Mapping[str, str]) -> None:
    """Report unused runs, one line for each reason: most are of data sets that other papers have."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(unused.items()):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        console().print(f"left out: {names[0]}{more}: {reason}", style="dim", highlight=False, markup=False)


if __name__ == "__main__":
    start(main)
