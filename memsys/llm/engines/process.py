"""A server process that cannot outlive the run."""

import atexit
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from memsys.llm.engines import guard

logger = logging.getLogger(__name__)

_KILL_SECONDS = 10.0


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
        """End the command and all it started; safe to call twice and from any thread."""
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
        """Kill what is left where the guard could not: it was killed itself, or hangs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
