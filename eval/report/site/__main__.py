"""Write static pages of results that can be hosted anywhere: ``memsys site``.

From packs (`memsys pack RUN`) and runs, by default `results/submissions` and `results/summaries`. Packs are verified,
and one that does not fit is named and left out. The pages work from a disk, load nothing from a network, and hold no
text that may not be passed on.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from eval.commands.commands import described, explains_errors, start
from eval.commands.places import RESULTS, check_folder
from eval.commands.terminal import say, stage
from eval.report.cache import FOLDER, Cache
from eval.report.config import load_config
from eval.report.data import collect, page_data
from eval.report.site.pages import Site, without
from eval.report.site.submissions import Submission, open_submissions, packs_in
from eval.runs.exports import is_exported_run
from eval.runs.files import write_atomic
from eval.runs.folders import SUMMARIES
from memsys.errors import RunDirectoryError

OUT, SUBMISSIONS = RESULTS / "site", RESULTS / "submissions"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the pages; returns the exit status."""
    parser = argparse.ArgumentParser(prog="memsys site", description=described(__doc__))
    parser.add_argument(
        "places",
        type=Path,
        nargs="*",
        metavar="PLACE",
        help="packs, run directories, or folders of them (default: results/submissions and results/summaries)",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pages (default: results/site)")
    options = parser.parse_args(arguments)
    check_folder(options.out)
    places = options.places or [place for place in (SUBMISSIONS, SUMMARIES) if place.is_dir()]
    folders = [place for place in places if place.is_dir() or is_exported_run(place)]
    packs = [pack for place in folders for pack in packs_in(place)]
    packs += [place for place in places if place not in folders]
    with ExitStack() as stack:
        submissions = open_submissions(packs, stack)
        write_site(folders, submissions, options.out)
    return 0


def write_site(folders: Sequence[Path], submissions: Sequence[Submission], out: Path) -> None:
    """Write the pages and say what they hold.

    Args:
        folders: of runs.
        submissions: checked packs.
        out: folder of the pages.

    Raises:
        RunDirectoryError: there is nothing to show, a file is damaged, or a page would be too large.
    """
    cache, config = Cache(FOLDER), load_config()
    with stage("reading the runs"):
        collected = without(collect([*(one.pack.run for one in submissions), *folders]), submissions)
    for one in submissions:
        if not one.fits:
            wrong = next(finding.text for finding in one.findings if finding.state == "does not fit")
            say(f"left out: {one.pack.path}: {wrong}; `memsys verify {one.pack.path}` says all", style="yellow")
    for skipped in collected.skipped:
        say(f"left out: {skipped.path}: {skipped.reason}", style="yellow")
    if not collected.runs:
        raise RunDirectoryError("nothing to show: no run here is complete and fits")
    data = page_data(collected, config, with_questions=False, cache=cache)
    with stage("writing the pages"):
        pages = Site(collected, data, submissions, config).pages()
        for path, page in pages.items():
            write_atomic(out / path, page.encode())
    largest = max(map(len, pages.values()))
    say(f"written: {out / 'index.html'} and {len(pages) - 1} more pages (the largest has {largest / 2**20:.1f} MiB)")


if __name__ == "__main__":
    start(main)
