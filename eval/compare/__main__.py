"""Put runs side by side: table, plot and tests against the first run: ``python -m eval.compare RUN RUN...``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.cli.commands import explains_errors, program, start
from eval.cli.terminal import stage
from eval.compare.report import compare
from eval.tables.stored import named_run_folders


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and compare; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("compare"),
        description="Runs side by side: terminal table, Markdown, CSV, LaTeX, plot, and tests against the first run.",
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run directories, or folders of them")
    parser.add_argument(
        "--out", type=Path, default=Path("comparison"), help="folder of the files (default: comparison)"
    )
    parser.add_argument("--protocol", help="protocol of conf/protocol (default: the runs' own)")
    options = parser.parse_args(arguments)
    with stage("comparing the runs"):
        compare(named_run_folders(options.runs), options.out, options.protocol)
    return 0


if __name__ == "__main__":
    start(main)
