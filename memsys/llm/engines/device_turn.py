"""One server of a group at a time on the same devices of a machine, however many processes would start one."""

import contextlib
import fcntl
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import IO

from memsys.errors import MemsysError
from memsys.llm.engines.registry import Registry

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


@contextlib.contextmanager
def device_turn(registry: Registry, *, wait: bool) -> Iterator[None]:
    """Keep the devices of this process for it, so that those that wait for them start no second server.

    The turn is the lock on a file, so that it ends with its process, however that ends. On a disk that cannot lock
    files there is no waiting.

    Args:
        registry: of the group of servers.
        wait: begin when no other process has its turn; else begin at once, even if another process serves there.

    Raises:
        MemsysError: its folder cannot be written.
    """
    path = registry.prepared() / f"turn-{_devices()}"
    try:
        file = path.open("w")
    except OSError as error:
        raise MemsysError(f"cannot write {path} ({error.strerror}); set serving.folder to another folder") from error
    with file:
        _take_lock(file, registry.folder.name, wait)
        yield


def _devices() -> str:
    """Return this machine and its GPUs that the process may use, as part of a file name."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    return re.sub(r"[^\w.-]", "_", f"{socket.gethostname()}-{gpus}")


def _take_lock(file: IO[str], group: str, wait: bool) -> None:
    waiting = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                threading.Thread(target=_take_when_free, args=(file,), daemon=True).start()
                return
            if not waiting:
                logger.info("another process serves %s on these devices; this one starts when it ends", group)
            waiting = True
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            logger.warning("the disk of %s cannot lock files (%s): not waiting for other servers", group, error)
            return
        else:
            return


def _take_when_free(file: IO[str]) -> None:
    """Take the lock when the process that has it ends, for those that wait then."""
    with contextlib.suppress(OSError, ValueError):  # closed in the meantime
        fcntl.flock(file, fcntl.LOCK_EX)
