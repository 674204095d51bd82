"""Writing the page again whenever a run changes: for a sweep that is still running."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eval.commands.terminal import say
from eval.report.cache import fingerprint
from eval.runs.folders import find_run_folders
from memsys.errors import RunDirectoryError, ScoringError
from memsys.vocabulary import Json


def watch(
    roots: Sequence[Path], every: int, build: Callable[[], None], pause: Callable[[float], None] = time.sleep
) -> None:
    """Build the page, and again after each change, until the user interrupts.

    A file that is being written while it is read makes a build fail; it is tried again at the next look. A folder that
    is not there yet is waited for: the page may be asked for before the sweep has begun.

    Args:
        roots: folders of runs.
        every: seconds between two looks.
        build: writes the page.
        pause: waits.

    Raises:
        RunDirectoryError: one of them is a file.
    """
    say(f"watching {', '.join(map(str, roots))}; Ctrl-C ends it")
    seen: Json = None
    missing: list[str] = []
    try:
        while True:
            absent = [str(root) for root in roots if not root.exists()]
            if absent != missing:
                missing = absent
                if absent:
                    say(f"waiting for {', '.join(absent)}: not there yet")
            now = [] if absent else state(roots)
            if now and now != seen:
                seen = now if _built(build) else None
            pause(every)
    except KeyboardInterrupt:
        say("stopped; the page stays as it was last written")


def state(roots: Sequence[Path]) -> Json:
    """Return the names, sizes and times of change of all files of all runs."""
    return [fingerprint(folder) for folder in find_run_folders(roots)]


def _built(build: Callable[[], None]) -> bool:
    try:
        build()
    except (RunDirectoryError, ScoringError) as error:
        say(f"not written yet: {error}", style="yellow")
        return False
    return True
