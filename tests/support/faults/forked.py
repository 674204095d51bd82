"""Run something in a forked process that may be killed, may hang, and whose output is kept."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HUNG = "hung"


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit status; minus the signal that killed it.
        hung: it ran past the limit and was killed for it.
        out: what it wrote to standard output.
        err: to standard error.
        seconds: it took.
    """

    code: int
    hung: bool
    out: str
    err: str
    seconds: float

    def problem(self) -> str:
        """What no command may do, whatever was done to it; empty when it did none of it."""
        if self.hung:
            return f"hung: killed after {self.seconds:.0f} s"
        if "Traceback (most recent call last)" in self.err + self.out:
            return "traceback: " + last_line(self.err)
        if self.code not in (0, 2, 3):
            return f"exit status {self.code}: {last_line(self.err)}"
        if self.code and "error: " not in self.err:
            return f"exit status {self.code} without a message"
        return "" if self.err.count("error: ") <= 3 else f"{self.err.count('error: ')} messages instead of one"


def last_line(text: str) -> str:
    """The last line that says something, at most 300 characters."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def forked(action: Callable[[], int | None], folder: Path, limit_s: float = 30.0) -> Ended:
    """Call a function in a forked process and wait for it.

    The calling process must have no other thread: a lock that one holds is never given free in the copy.

    Args:
        action: returns the exit status.
        folder: the output is kept here.
        limit_s: seconds after which it is killed.
    """
    out, err = folder / "stdout", folder / "stderr"
    sys.stdout.flush()
    begun = time.monotonic()
    pid = os.fork()
    if not pid:
        _be_child(action, out, err)
    status, hung = _wait(pid, begun + limit_s)
    read = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in (out, err)]
    return Ended(os.waitstatus_to_exitcode(status), hung, *read, time.monotonic() - begun)


def _wait(pid: int, deadline: float) -> tuple[int, bool]:
    pause = 0.001
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, False
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1], True
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _be_child(action: Callable[[], int | None], out: Path, err: Path) -> None:
    code = 1
    try:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        # Test runners put objects of their own here.
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        code = action() or 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, the interpreter would print it and end with 1
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
