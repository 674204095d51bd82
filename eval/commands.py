"""What the command lines share: exit statuses, one message for what a user can mend, the option that names runs."""

import argparse
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from eval.terminal import complain
from memsys.errors import MemsysError

#: A setting or a file is wrong; the work is not whole, and the same command goes on; stopped from the keyboard.
EXIT_ERROR, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 2, 3, 130

P = ParamSpec("P")


def explains_errors(main: Callable[P, int]) -> Callable[P, int]:
    """Let a command end with one message and ``EXIT_ERROR`` where it raises an error of ours."""

    @wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return main(*args, **kwargs)
        except MemsysError as error:
            complain(str(error))
            return EXIT_ERROR

    return run


def add_runs_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--runs``; without it a command reads :func:`eval.tables.stored.stored_folders`."""
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        help="run directories or folders of them (default: results/runs and results/summaries)",
    )
