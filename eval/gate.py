"""Fail where a memory got worse than it was: ``memsys gate RUN --against BASELINE``.

The baseline is a run on the same questions, or its pack (`memsys pack RUN`), which a repository can keep. The tests are
those of `memsys compare`. Ends with 5 where a difference is confirmed, and larger than the margin.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path

from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, described, explains_errors, program, start
from eval.commands.terminal import say, stage
from eval.results.compare.regression import regression
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.runs.folders import one_run_folder
from memsys.errors import RunDirectoryError


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and test; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("gate"), description=described(__doc__))
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory, or a pack")
    parser.add_argument("--against", type=Path, required=True, metavar="BASELINE", help="pack or run directory")
    parser.add_argument(
        "--margin", type=_points, default=0.0, metavar="POINTS", help="points of a score that may be lost (default: 0)"
    )
    options = parser.parse_args(arguments)
    with _stored(options.against) as baseline, _stored(options.run) as run, stage("testing"):
        found = regression(baseline, run, options.margin)
    say(found.sentence)
    if found.unlike:
        say(f"the two runs differ in more than the memory: {found.unlike}", style="yellow")
    margin = f"margin {options.margin:g} points"
    if found.worse:
        say(f"failed: it got worse on these questions ({', '.join(found.worse)}; {margin})", style="red")
        return EXIT_DIFFERENT
    say(f"passed: no loss is confirmed ({margin})", style="green")
    return EXIT_DONE


def _points(text: str) -> float:
    try:
        points = float(text)
    except ValueError:
        points = -1.0
    if not isfinite(points) or points < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of points from 0")
    return points


@contextmanager
def _stored(path: Path) -> Iterator[StoredRun]:
    """Read a run, or the one in a pack."""
    if path.is_file():
        from eval.audit.packs.files import opened_pack

        with opened_pack(path) as pack:
            if pack.altered:
                raise RunDirectoryError(
                    f"{path}: {', '.join(pack.altered)} was changed after packing; fetch it again "
                    f"(`memsys verify {path}` says what does not fit)"
                )
            yield _read(pack.run)
        return
    yield _read(one_run_folder(path))


def _read(path: Path) -> StoredRun:
    run = read_run(path)
    if isinstance(run, Skipped):
        raise RunDirectoryError(f"{path}: {run.reason}")
    return run


if __name__ == "__main__":
    start(main)
