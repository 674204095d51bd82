"""Check a pack: score it again and say what holds, what is only claimed: ``memsys verify FILE...``.

Answers and retrievals are scored again over the gold of the data set where it is at hand, means are computed again from
the scores, and costs from the calls. Ends with 5 where something does not fit.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, described, explains_errors, program, start
from eval.commands.terminal import say, stage
from memsys.errors import ConfigError

_STYLES = {"does not fit": "red", "claimed": "yellow"}


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and check; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("verify"), description=described(__doc__))
    parser.add_argument("packs", type=Path, nargs="+", metavar="FILE", help="files that `memsys pack` wrote")
    parser.add_argument(
        "--run", type=Path, metavar="RUN", help="run directory that the file was made of, for texts that it withholds"
    )
    options = parser.parse_args(arguments)
    if options.run is not None and len(options.packs) > 1:
        raise ConfigError(f"--run {options.run} goes with one file; {len(options.packs)} are named")
    from eval.audit.packs.checking import check_pack

    status = EXIT_DONE
    for path in options.packs:
        with stage(f"checking {path}"):
            found = check_pack(path, options.run)
        for one in found:
            say(f"{one.state:<13}{one.what}: {one.text}", style=_STYLES.get(one.state))
        wrong = sum(one.count for one in found if one.state == "does not fit")
        if wrong:
            status = EXIT_DIFFERENT
        said = f"{wrong} check{'' if wrong == 1 else 's'} failed" if wrong else "all that can be checked fits"
        say(f"{path}: {said}", style="red" if wrong else "green")
    return status


if __name__ == "__main__":
    start(main)
