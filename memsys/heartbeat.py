"""Files that a process touches every few seconds, so that other machines can see in a shared folder that it still runs.

Ages are differences between times of files in that folder, so that the clocks of the machines need not agree.
"""

import logging
import os
import re
import socket
import threading
from pathlib import Path

from memsys.files import replace_file
from memsys.repeating import RepeatedCall

logger = logging.getLogger(__name__)

#: Seconds between two touches, and the age of a file from which on its process counts as gone.
BEAT_SECONDS = 5.0
GONE_SECONDS = 45.0


def own_name() -> str:
    """Return the name of this process among all machines."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return f"{host}-{os.getpid()}-{threading.get_native_id()}"


def disk_time(folder: Path) -> float:
    """Return the time, in seconds, by the clock of the disk that a folder lies on."""
    probe = folder / f".clock-{own_name()}"
    probe.touch()
    seconds = probe.stat().st_mtime
    probe.unlink()
    return seconds


def is_young(path: Path, now: float) -> bool:
    """Return whether a file was touched less than :data:`GONE_SECONDS` ago.

    Args:
        path: in a folder that several machines see.
        now: seconds, from :func:`disk_time`.

    Raises:
        FileNotFoundError: it was removed.
    """
    return now - path.stat().st_mtime < GONE_SECONDS


class Heartbeat:
    """A file that is touched while its process runs.

    Args:
        path: of the file, which is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repeated: RepeatedCall | None = None

    @classmethod
    def with_text(cls, path: Path, text: str) -> "Heartbeat":
        """Write the file first.

        Raises:
            OSError: it cannot be written.
        """
        replace_file(path, text.encode())
        return cls(path)

    def touch(self) -> None:
        """Touch the file once, if it is there; a disk that refuses is a warning, as the next touch may be in time."""
        try:
            os.utime(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.warning("cannot touch %s to show that we run (%s); trying again", self.path, error.strerror)

    def start(self) -> "Heartbeat":
        """Touch it every :data:`BEAT_SECONDS` from a thread until :meth:`stop`."""
        self._repeated = RepeatedCall(self.touch, BEAT_SECONDS, f"beat {self.path.name}").start()
        return self

    def stop(self) -> None:
        """Touch it no more; safe to call twice, and before :meth:`start`."""
        if self._repeated is not None:
            self._repeated.stop()
            self._repeated = None

    def remove(self) -> None:
        """Stop, and remove the file; safe to call twice."""
        self.stop()
        self.path.unlink(missing_ok=True)
