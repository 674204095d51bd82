"""Print and write the papers' tables, printed and measured side by side: ``memsys tables``."""

import argparse
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from eval.commands.commands import add_runs_option, explains_errors, program, start
from eval.commands.int_options import count
from eval.commands.places import RESULTS, check_folder, tracked_remark
from eval.commands.rendering.table import Table, columns
from eval.commands.rendering.terminal import show
from eval.commands.terminal import console, say, stage
from eval.loaders.registry import info_of
from eval.results.frame import read_runs, say_left_out
from eval.results.own.pages import own_pages
from eval.results.papers.faults import check_all, faults_page
from eval.results.papers.printed import load_printed
from eval.results.stored_run import StoredRun
from eval.results.tables.cost_page import cost_page
from eval.results.tables.costs import COSTS, load_costs
from eval.results.tables.label_view import all_under_labels
from eval.results.tables.model import PaperTable
from eval.results.tables.overview import CLAIMS, INDEX, claims_page, index_page, paper_overview
from eval.results.tables.paper_page import paper_files
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.printed_answers import answers_page, printed_answers
from eval.results.tables.spec import load_spec, spec_names
from eval.runs.files import write_atomic
from eval.runs.folders import chosen_folders, short_path
from eval.scoring.labels import VIEW_HELP, LabelView, check_view
from memsys.errors import ConfigError

OUT = RESULTS / "tables"
#: Tables under another view of disputed labels lie in a folder of its name.
OTHER_VIEWS = RESULTS / "label_views"
FAULTS = "averages_that_do_not_follow.md"
_OVERVIEW_LEGEND = (
    "numbers printed in the paper; of these, measured under the same conditions; of these, reproduced; measured on a "
    "subset or under different conditions; not measured; measured numbers that the paper does not print"
)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the tables; returns the exit status."""
    options = _parser().parse_args(arguments)
    check_view(options.labels)
    out = options.out or (OUT if options.labels == "printed" else OTHER_VIEWS / options.labels)
    check_folder(out)
    papers = options.paper or _papers_with(options.table)
    _check_tables(papers, options.table or ())
    folders, whole = chosen_folders(options.runs), not options.table and set(papers) == set(spec_names())
    remark = tracked_remark(out)
    with _another_process() if whole else nullcontext() as other:
        own = other.submit(_own_files, folders, options.labels, tracked=bool(remark)) if other else None
        with stage("reading the runs"):
            runs = _runs(folders, options.labels)
        if remark and (private := [run for run in runs if _is_private(run)]):
            many = f"{len(private)} run{'' if len(private) == 1 else 's'}"
            say(f"left out: {many} on data of your own, since git tracks {short_path(out)}; "
                "`memsys tables --out FOLDER` shows them", style="yellow")  # fmt: skip
            runs = [run for run in runs if not _is_private(run)]
        _run(papers, options.table, runs, out, own)
    if remark:
        console().print(remark, highlight=False, markup=False)
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


def _another_process() -> ProcessPoolExecutor:
    """Return a second process, which Ctrl-C ends without a traceback."""
    return ProcessPoolExecutor(1, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL))


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
    say_left_out([*(f"{short_path(run.path)}: {run.reason}" for run in skipped), *reasons])
    return runs


def _run(
    papers: Sequence[str],
    numbers: Sequence[int] | None,
    runs: Sequence[StoredRun],
    out: Path,
    own: Future[dict[str, str]] | None,
) -> None:
    """Build and write the tables of papers, and what belongs to no paper where all of them are built.

    Args:
        papers: by name.
        numbers: tables of them; all where none is named.
        runs: what was measured.
        out: folder of the files.
        own: our own tables, which another process makes; ``None`` where some papers or tables alone are wanted.
    """
    built = []
    for paper in papers:
        with stage(f"building the tables of {paper}"):
            built.append(build_tables(paper, runs, numbers))
    files = {
        FAULTS: faults_page(check_all()),
        COSTS: cost_page(load_costs(), runs),
    }
    for tables, _ in built:
        for table in tables:
            files |= paper_files(table)
        if numbers is None:
            spec = tables[0].paper
            files[f"{spec.paper}.md"] = paper_overview(tables)
            if answers := printed_answers(spec.paper):
                files[answers.file] = answers_page(answers, spec, runs)
        console().print(f"{tables[0].paper.label}: tables in {short_path(out)}", highlight=False, markup=False)
        show(_overview(tables))
    _report_unused([unused for _, unused in built])
    if own is not None:
        whole = {paper: tables for paper, (tables, _) in zip(papers, built, strict=True)}
        files |= {INDEX: index_page(whole), CLAIMS: claims_page(whole)}
        with stage("waiting for our own tables"):
            files |= own.result()
    for name, text in files.items():
        write_atomic(out / name, text.encode())
    console().print(_OVERVIEW_LEGEND, style="dim", highlight=False)


def _is_private(run: StoredRun) -> bool:
    """Return whether a run is on unpublished data, as far as its preset says."""
    return run.of_own_data or info_of(run.dataset) is None


def _own_files(folders: Sequence[Path], labels: LabelView, *, tracked: bool) -> dict[str, str]:
    """Return the files of our own tables, in a process that reads the runs itself: sent, they would take as long."""
    runs, _ = all_under_labels(read_runs(folders)[0], labels)
    shown = [run for run in runs if not (run.of_sample or (tracked and _is_private(run)))]
    pages = own_pages(shown)  # no samples, as in the papers' tables
    return {name: text for page in pages for name, text in page.files.items()}


def _overview(tables: Sequence[PaperTable]) -> Table:
    headings = ("table", "printed", "measured", "reproduced", "part", "missing", "extra")
    return Table(
        "", columns(headings), [[f"{table.number:>2} {table.spec.title}", *_counts(table)] for table in tables]
    )


def _counts(table: PaperTable) -> tuple[int, ...]:
    cells = [cell for _, _, _, cell in table.cells]
    printed = [cell for cell in cells if cell.printed is not None]
    compared = [cell for cell in printed if cell.comparable]
    return (
        len(printed),
        len(compared),
        sum(cell.verdict == "reproduced" for cell in compared),
        sum(cell.measured is not None and not cell.comparable for cell in printed),
        sum(cell.measured is None and not cell.setting for cell in printed),
        sum(cell.measured is not None and cell.printed is None for cell in cells),
    )


def _report_unused(by_paper: Sequence[Mapping[str, str]]) -> None:
    """Report the runs that no paper's table has: of one paper a line for each reason, of several how many."""
    nowhere = sorted(set.intersection(*(set(unused) for unused in by_paper)))
    if len(by_paper) > 1:
        if nowhere:
            count = f"{len(nowhere)} run{'' if len(nowhere) == 1 else 's'}"
            say(f"in no paper's table: {count}; `memsys tables --paper NAME` says why", style="dim")
        return
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(by_paper[0].items()):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        console().print(f"left out: {names[0]}{more}: {reason}", style="dim", highlight=False, markup=False)


if __name__ == "__main__":
    start(main)
