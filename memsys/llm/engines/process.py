"""A server process that cannot outlive the run."""

import atexit
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memsys.llm.engines import guard

logger = logging.getLogger(__name__)

_KILL_SECONDS = 10.0
#: Between two looks at what is left of a group that was killed.
_LOOK_SECONDS = 0.02
#: States of ``/proc/PID/stat`` in which nothing runs any longer: the entry waits for its parent, or is being removed.
_ENDED_STATES = frozenset({"Z", "X", "x"})


class GuardedProcess:
    """A command that runs in a process group of its own under :mod:`~memsys.llm.engines.guard`.

    Args:
        command: program and arguments.
        environment: the whole environment of the command.
        log: file that its output is appended to.
        grace_seconds: between SIGTERM and SIGKILL when it is stopped.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, grace_seconds: float = 15.0
    ) -> None:
        self._grace = grace_seconds
        self._lock = threading.Lock()
        self._stopped = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", os.fspath(Path(guard.__file__)), str(grace_seconds), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                # The terminal's Ctrl-C must not reach the server before we have stopped asking it.
                start_new_session=True,
            )
        atexit.register(self.stop)

    @property
    def exit_status(self) -> int | None:
        """The command's exit status; ``None`` while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """End the command and its process group, and return when no process of it runs; safe to call twice.

        A process that has ended but that its parent has not yet collected counts as ended: it holds nothing, and
        where the parent is a container's first process it may stay for good. One that does not end although it was
        killed (in the middle of a driver call, say) is waited for ten seconds and then named in a warning.
        """
        with self._lock:
            if self._stopped:
                return  # the system may have given our process ids to others since
            self._stopped = True
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()
            try:
                self._process.wait(self._grace + _KILL_SECONDS)
            except subprocess.TimeoutExpired:
                logger.warning("the guard %d did not end; killing it and its group", self._process.pid)
            self._kill_group()
            atexit.unregister(self.stop)

    def _kill_group(self) -> None:
        """Kill what is left where the guard could not (it was killed itself, or hangs), and see it end.

        The kernel gives a process's memory and devices back after the signal, which takes a large server a while.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _KILL_SECONDS
        while (left := running_members(self._process.pid)) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        if left:
            logger.warning("killed %.0f s ago and still there: processes %s", _KILL_SECONDS, sorted(left))


def running_members(group: int) -> set[int]:
    """Return the processes of a group that still run; without those that have ended and only wait to be collected.

    Args:
        group: the process group's id.

    Returns:
        Process ids; none where there is no ``/proc`` to look in (macOS).
    """
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        member = _state_and_group(folder / "stat")
        if member is not None and member[1] == group and _has_running_thread(folder):
            found.add(int(folder.name))
    return found


def _state_and_group(path: Path) -> tuple[str, int] | None:
    """Return the state letter and process group in a ``stat`` file; ``None`` where the process has gone meanwhile."""
    try:
        # The name of the program, in parentheses, may hold blanks and parentheses itself.
        fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[2])


def _has_running_thread(process: Path) -> bool:
    """Return whether any thread runs: the first one's state alone says "ended" while others still hold the memory."""
    states = (_state_and_group(path) for path in process.glob("task/*/stat"))
    return any(state is not None and state[0] not in _ENDED_STATES for state in states)
