"""The lock that keeps a run directory to one process; it ends with that process, however that ends."""

import fcntl
import os
import time
from pathlib import Path

from eval.runs.files import disk_error
from memsys.errors import RunDirectoryError

_POLL_SECONDS = 0.5


def lock_folder(folder: Path, wait_s: float) -> int:
    """Make a run directory and lock it.

    Args:
        folder: made if it does not exist.
        wait_s: seconds to wait for another process that holds the lock.

    Returns:
        An open file; closing it unlocks the folder.

    Raises:
        RunDirectoryError: the folder cannot be made or written, another process holds it, or its disk is full or has
            no locks.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        message = f"cannot open run directory {folder}: {error.strerror}; choose another run_dir or runs_dir"
        raise RunDirectoryError(message) from error
    try:
        _wait_for(lock, wait_s)
    except BlockingIOError as error:
        owner = os.read(lock, 64).decode().strip()
        os.close(lock)
        message = f"run directory {folder} is in use by process {owner}; wait for it or choose another run_dir"
        raise RunDirectoryError(message) from error
    except OSError as error:
        os.close(lock)
        raise RunDirectoryError(
            f"the disk of {folder} cannot lock files ({error.strerror}); set runs_dir to a folder elsewhere"
        ) from error
    try:
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except OSError as error:
        os.close(lock)
        raise disk_error(folder / ".lock", error) from error
    return lock


def _wait_for(lock: int, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL_SECONDS)
