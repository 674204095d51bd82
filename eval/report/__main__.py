"""Write one page of everything measured: ``python -m eval.report``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.cli.commands import add_runs_option, explains_errors, program, start
from eval.cli.places import RESULTS, check_file
from eval.cli.terminal import console, stage
from eval.report.config import load_config
from eval.report.data import collect, page_data
from eval.report.page import render_page
from eval.runs.files import write_atomic
from eval.tables.stored import stored_folders

OUT = RESULTS / "report.html"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("report"),
        description="One HTML file with leaderboard, tables, definitions, plots and every question. It quotes the data "
        "sets: keep it to yourself.",
    )
    add_runs_option(parser)
    parser.add_argument("--no-questions", action="store_true", help="leave the questions out: a small page, no text")
    parser.add_argument("--out", type=Path, default=OUT, help="HTML file (default: results/report.html)")
    options = parser.parse_args(arguments)
    check_file(options.out)
    with stage("making the report"):
        collected = collect(options.runs or stored_folders())
        page = render_page(page_data(collected, load_config(), with_questions=not options.no_questions))
    write_atomic(options.out, page.encode())
    for one in collected.skipped:
        console().print(f"left out: {one.path}: {one.reason}", style="yellow", highlight=False, markup=False)
    count = f"{len(collected.runs)} run{'s' if len(collected.runs) > 1 else ''}"
    text = f"written: {options.out} ({len(page) / 2**20:.1f} MiB, {count})"
    console().print(text, highlight=False, markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    start(main)
