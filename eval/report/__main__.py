"""Write one page of everything measured, once or again whenever a run changes: ``memsys report``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import add_runs_option, explains_errors, program, start
from eval.commands.int_options import count
from eval.commands.places import RESULTS, check_file
from eval.commands.terminal import say, stage
from eval.report.cache import FOLDER, Cache
from eval.report.config import load_config
from eval.report.data import Collected, collect, page_data
from eval.report.live import GOING
from eval.report.page import render_page
from eval.report.watch import watch
from eval.results.frame import say_left_out
from eval.runs.files import write_atomic
from eval.runs.folders import RUNS, stored_folders
from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, SHOW_ANYWAY_HELP

OUT = RESULTS / "report.html"
HOUR = 3600


def build(options: argparse.Namespace, roots: Sequence[Path], *, refresh: int | None = None) -> bool:
    """Write the page once and say what it holds.

    Args:
        options: the command line.
        roots: folders of runs.
        refresh: seconds after which an open page loads itself again; ``None``: never.

    Returns:
        Whether a run is going.

    Raises:
        RunDirectoryError: there is nothing to show, or a file is broken.
    """
    cache = Cache(None if options.no_cache else FOLDER)
    with stage("reading the runs"):
        collected = collect(roots)
    data = page_data(
        collected,
        load_config(),
        with_questions=not options.no_questions,
        cache=cache,
        unmeasured_judges=options.unmeasured_judges,
    )
    with stage("writing the page"):
        page = render_page(data, refresh=refresh)
        write_atomic(options.out, page.encode())
        cache.prune()
    if refresh is None:
        _say(options.out, len(page), collected)
    return any(one.status in GOING for one in collected.unfinished)


def _say(out: Path, size: int, collected: Collected) -> None:
    say_left_out([f"{one.path}: {one.reason.removeprefix(f'{one.path} ')}" for one in collected.skipped])
    count = f"{len(collected.runs)} run{'' if len(collected.runs) == 1 else 's'}"
    waiting = f", {len(collected.unfinished)} not ended or not scored" if collected.unfinished else ""
    say(f"written: {out} ({size / 2**20:.1f} MiB, {count}{waiting})")


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("report"),
        description="One HTML file that says which memory to use and whether the difference is real, with all scores, "
        "tables, definitions, plots and every question. It quotes the data sets: keep it to yourself.",
    )
    add_runs_option(parser)
    parser.add_argument("--no-questions", action="store_true", help="leave the questions out: a small page, no text")
    parser.add_argument("--out", type=Path, default=OUT, help="HTML file (default: results/report.html)")
    parser.add_argument("--no-cache", action="store_true", help="compute everything again and keep nothing")
    parser.add_argument("--watch", action="store_true", help="show the answers of runs as they come, until they end")
    parser.add_argument(
        "--every", type=count(1, HOUR), default=10, metavar="SECONDS", help="how often --watch looks (default: 10)"
    )
    parser.add_argument(SHOW_ANYWAY, action="store_true", help=SHOW_ANYWAY_HELP)
    options = parser.parse_args(arguments)
    check_file(options.out)
    # Summaries do not change, and to read them all takes longer than a run's answers.
    roots = options.runs or ([RUNS] if options.watch else stored_folders())
    if options.watch:
        say(f"the page is {options.out.resolve().as_uri()}")
        watch(roots, options.every, lambda last: build(options, roots, refresh=None if last else options.every))
    else:
        build(options, roots)
    return 0


if __name__ == "__main__":
    start(main)
