"""Writing the page again whenever a run changes, until the runs have ended."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from eval.commands.terminal import say
from eval.report.cache import fingerprint
from eval.runs.folders import find_run_folders
from memsys.errors import RunDirectoryError, ScoringError
from memsys.vocabulary import Json

#: Seconds after the last run has ended in which the next one of a sweep may begin.
_NEXT_RUN = 60


def watch(
    roots: Sequence[Path], every: int, build: Callable[[bool], bool], pause: Callable[[float], None] = time.sleep
) -> None:
    """Build the page, and again after each change, until the runs that were seen going have ended.

    If none was in progress, it continues until the user interrupts.

    A file that is being written while it is read makes a build fail; it is tried again at the next look. A folder that
    is not there yet is waited for: the page may be asked for before the sweep has begun.

    Args:
        roots: folders of runs.
        every: seconds between two looks.
        build: writes the page, with ``True`` for the last time; returns whether a run is going.
        pause: waits.

    Raises:
        RunDirectoryError: one of them is a file.
    """
    say(f"watching {', '.join(map(str, roots))}; ends with the runs, or by Ctrl-C")
    seen: Json = None
    missing: list[str] = []
    going: bool | None = None
    was_going, quiet = False, 0
    try:
        while True:
            absent = [str(root) for root in roots if not root.exists()]
            if absent != missing:
                missing = absent
                if absent:
                    say(f"waiting for {', '.join(absent)}: not there yet")
            now = [] if absent else state(roots)
            if now and now != seen:
                going, quiet = _built(build), 0
                seen = None if going is None else now
                was_going = was_going or going is True
            elif was_going and going is False:
                quiet += every
            if quiet >= _NEXT_RUN:
                build(True)
                say("the runs have ended, and the page with them")
                return
            pause(every)
    except KeyboardInterrupt:
        say("stopped; the page stays as it was last written")


def state(roots: Sequence[Path]) -> Json:
    """Return the names, sizes and times of change of all files of all runs."""
    return [fingerprint(folder) for folder in find_run_folders(roots)]


def _built(build: Callable[[bool], bool]) -> bool | None:
    """Build the page; returns whether a run is going, ``None`` where it could not be built."""
    try:
        return build(False)
    except (RunDirectoryError, ScoringError) as error:
        say(f"not written yet: {error}", style="yellow")
        return None
