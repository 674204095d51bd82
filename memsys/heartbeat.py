"""Files that are young while their owner lives, in a folder that several machines see.

Ages are differences between times of files in that folder: the clocks of the machines do not enter.
"""

import contextlib
import logging
import os
import re
import socket
import threading
from pathlib import Path

from memsys.files import replace_file
from memsys.repeating import RepeatedCall

logger = logging.getLogger(__name__)

#: Seconds between two signs of life, and until one that gives none counts as gone.
BEAT_SECONDS = 5.0
GONE_SECONDS = 45.0


def own_name() -> str:
    """Name of this process among all machines."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return f"{host}-{os.getpid()}-{threading.get_native_id()}"


def disk_time(folder: Path) -> float:
    """The time, in seconds, by the clock of the disk that a folder lies on."""
    probe = folder / f".clock-{own_name()}"
    probe.touch()
    seconds = probe.stat().st_mtime
    probe.unlink()
    return seconds


def is_young(path: Path, now: float) -> bool:
    """Whether a file was touched lately.

    Args:
        path: in a folder that several machines see.
        now: from :func:`disk_time`.

    Raises:
        FileNotFoundError: it has gone.
    """
    return now - path.stat().st_mtime < GONE_SECONDS


class Heartbeat:
    """A file that is young while its owner lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repeated: RepeatedCall | None = None

    @classmethod
    def with_text(cls, path: Path, text: str) -> "Heartbeat":
        """Write the file first."""
        replace_file(path, text.encode())
        return cls(path)

    def touch(self) -> None:
        """Give a sign of life."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path)

    def start(self) -> "Heartbeat":
        """Give signs of life from a thread until :meth:`stop`."""
        self._repeated = RepeatedCall(self._beat, BEAT_SECONDS, f"beat {self.path.name}").start()
        return self

    def stop(self) -> None:
        """Give no more signs of life; safe to call twice, and before :meth:`start`."""
        if self._repeated is not None:
            self._repeated.stop()
            self._repeated = None

    def remove(self) -> None:
        """Stop, and take the file away; safe to call twice."""
        self.stop()
        self.path.unlink(missing_ok=True)

    def _beat(self) -> None:
        try:
            self.touch()
        except OSError as error:  # a shared disk has its bad moments; its end would look like ours
            logger.warning("no sign of life in %s (%s); trying again", self.path, error.strerror)
