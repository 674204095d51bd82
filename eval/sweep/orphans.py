"""Cells of a sweep on this machine end when the sweep's own process has ended, in whatever way.

Without that, cells whose sweep was killed would go on, and wait for a shared server that nobody starts again.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Names the sweep's process to its cells, which inherit the environment.
_VARIABLE = "MEMSYS_SWEEP_PROCESS"
_LOOK_SECONDS = 1.0
#: Between SIGTERM, at which a run closes its files, and SIGKILL.
_GRACE_SECONDS = 15.0


@contextmanager
def cells_follow_this_process() -> Iterator[None]:
    """Let cells that are started within a ``with`` block end with this process."""
    os.environ[_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def end_with_the_sweep() -> None:
    """In a cell: end this process soon after the sweep that started it has ended. Does nothing elsewhere."""
    sweep = int(os.environ.get(_VARIABLE, os.getpid()))
    name = f"follow-{sweep}"
    if sweep == os.getpid() or any(thread.name == name for thread in threading.enumerate()):
        return
    threading.Thread(target=_follow, args=(sweep,), name=name, daemon=True).start()


def _follow(sweep: int) -> None:
    while os.getppid() == sweep:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
