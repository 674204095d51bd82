"""Make one file of a run that can be handed on: ``memsys pack RUN``.

It holds scores, what each question retrieved by turn ids, calls, digests of data and prompts, and the environment.
Texts are in it where the licence of the data lets them be passed on, else digests. `memsys verify FILE` checks it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.places import RESULTS, check_file
from eval.commands.terminal import say, stage
from eval.runs.folders import one_run_folder
from eval.runs.load import read_record

OUT = RESULTS / "packs"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and pack; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("pack"), description=described(__doc__))
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--out", type=Path, help="file to write (default: results/packs/RUN.zip)")
    options = parser.parse_args(arguments)
    from eval.audit.packs.making import file_name, pack_run

    found = one_run_folder(options.run)
    out = check_file(options.out or OUT / file_name(read_record(found)))
    with stage(f"packing {found}"):
        manifest = pack_run(found, out)
    texts = "texts are included" if manifest.texts else "texts are withheld, their digests are included"
    say(f"written: {out} ({out.stat().st_size / 1024:.0f} KiB; {texts}; licence of the data: {manifest.licence})")
    return 0


if __name__ == "__main__":
    start(main)
