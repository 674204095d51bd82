"""Run a server so that nothing of it outlives us, however we end.

Run as a program in a session of its own: ``python guard.py GRACE_SECONDS COMMAND ...``. The guard starts the command in
its process group and waits for the first of three things: the command ends; its own standard input reaches its end,
which happens when the parent closes the pipe or dies in any way (``kill -9`` included); a termination signal comes.
Then it ends every process of the group: SIGTERM, the grace period, SIGKILL. Its exit status is the command's, unless
that last step took the guard along.

A pipe is used rather than the parent-death signal alone because that signal fires when the starting *thread* ends.
The guard has one thread, so between guard and command the signal is right. Should the guard itself be killed, the
parent finds the rest of the group under the guard's process id.

Standard library only: it starts in a few hundredths of a second. Linux only in that orphans of the command are adopted.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TICK_SECONDS = 0.1
#: What is left of the group once the command itself has ended gets this long.
_LEFTOVER_SECONDS = 1.0


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Guard:
    """One guarded command.

    Args:
        command: program and arguments.
        grace_seconds: between SIGTERM and SIGKILL.
    """

    def __init__(self, command: list[str], grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._status: int | None = None
        self._stopping = False
        # Orphans of the command become our children, so that we see when the last of them has ended.
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._pid = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        ).pid

    def wait(self) -> int:
        """Wait, clean up, return the command's exit status (128 + signal if one killed it)."""
        while self._status is None and not self._stopping and not _parent_gone():
            self._reap()
        if self._reap() and not self._ended_after_sigterm():
            os.killpg(0, signal.SIGKILL)
        return self._status if self._status is not None and self._status >= 0 else 128 - (self._status or 0)

    def ask_to_stop(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self._stopping = True

    def _ended_after_sigterm(self) -> bool:
        """Ask the group to end; whether it did within the grace period."""
        deadline = time.monotonic() + self._grace
        os.killpg(0, signal.SIGTERM)  # we are of the group too, and have a handler
        while self._reap():
            if self._status is not None:
                deadline = min(deadline, time.monotonic() + _LEFTOVER_SECONDS)
            if time.monotonic() > deadline:
                return False
            time.sleep(_TICK_SECONDS / 2)
        return True

    def _reap(self) -> bool:
        """Collect every child that has ended, and remember the command's status; whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._status = os.waitstatus_to_exitcode(status)


def _parent_gone() -> bool:
    """Wait one tick for the end of standard input."""
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], _TICK_SECONDS)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


def main(arguments: list[str]) -> int:
    """Guard the command that the arguments name."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which then closes the pipe
    guard = Guard(arguments[1:], float(arguments[0]))
    signal.signal(signal.SIGTERM, guard.ask_to_stop)
    return guard.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
