"""Cells of a sweep on this machine end when the sweep's own process has ended, in whatever way.

Without that, cells whose sweep was killed would continue, and wait for a shared server that is never started again.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Names the sweep's process, and its batch job if it runs in one, to its cells, which inherit the environment.
_VARIABLE = "MEMSYS_SWEEP_PROCESS"
_LOOK_SECONDS = 0.5
#: Between SIGTERM, at which a run closes its files, and SIGKILL.
_GRACE_SECONDS = 5.0


@contextmanager
def cells_follow_this_process() -> Iterator[None]:
    """Let cells that any launcher starts on this machine within a ``with`` block end with this process."""
    os.environ[_VARIABLE] = f"{os.getpid()} {_batch_job()}"
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def end_with_the_sweep() -> None:
    """End this process, a cell, soon after the sweep that started it has ended.

    Does nothing in the sweep's own process, nor in a batch job of its own, which continues without the sweep.
    """
    process, _, job = os.environ.get(_VARIABLE, "").partition(" ")
    sweep = int(process or os.getpid())
    name = f"follow-{sweep}"
    if sweep == os.getpid() or job != _batch_job() or any(thread.name == name for thread in threading.enumerate()):
        return
    threading.Thread(target=_follow, args=(sweep,), name=name, daemon=True).start()


def _batch_job() -> str:
    return os.environ.get("SLURM_JOB_ID", "")


def _follow(sweep: int) -> None:
    parent = os.getppid()  # the sweep, or a process that a launcher has put between
    while os.getppid() == parent and _is_there(sweep):
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
