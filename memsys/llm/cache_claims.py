"""Claims on calls: of all jobs that share a reply cache, one makes a call and the others wait for its reply.

A claim is a lock on one byte of a file. It ends with the process that holds it, however that ends, and leaves nothing
to clean up. The byte itself says whether a call was begun under it before: only then its reply has to be looked for.
On Linux a lock belongs to the opened file, so that two caches of one process exclude each other too; elsewhere it
belongs to the process.
"""

import fcntl
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsys.errors import MemsysError
from memsys.llm.cache_files import cache_write_errors

#: Bytes of the file of claims, one for each class of keys: many enough that two calls in flight rarely share one.
_CLAIMS = 1 << 24
_BEGUN = b"\1"


class Claim:
    """A byte of the file of claims while we hold the lock on it."""

    def __init__(self, folder: Path, file: int, position: int) -> None:
        self._folder, self._file, self._position = folder, file, position

    def begun(self) -> bool:
        """Return whether a call was started under this claim before."""
        return os.pread(self._file, 1, self._position) == _BEGUN

    def begin(self) -> None:
        """Record a call before it is made, since a process may be killed right after it stored the reply.

        Raises:
            MemsysError: the disk is full or the file cannot be written.
        """
        with cache_write_errors(self._folder):
            os.pwrite(self._file, _BEGUN, self._position)


class CallClaims:
    """The file of claims of one reply cache; another one of the same folder holds claims of its own.

    Args:
        folder: of the cache; made with the first claim.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    @contextmanager
    def hold(self, key: str) -> Iterator[Claim | None]:
        """Hold the claim on a call; ``None`` if another cache holds it.

        Args:
            key: of the reply, a hash in hexadecimal digits.

        Raises:
            MemsysError: the file cannot be opened, or its disk cannot lock.
        """
        file, position = self._opened(), int(key, 16) % _CLAIMS
        try:
            _lock(file, position)
        except (BlockingIOError, PermissionError):  # how systems say that another one holds it
            yield None
            return
        except OSError as error:
            raise MemsysError(
                f"the disk of the reply cache {self._folder} cannot lock files ({error.strerror}), so that jobs cannot "
                "share calls there; set cache_dir to a folder on a disk that can, or cache_shared=false"
            ) from error
        try:
            yield Claim(self._folder, file, position)
        finally:
            if self._file == file:  # else closed in the meantime, which has freed all its locks
                _unlock(file, position)

    def close(self) -> None:
        """Close the file; a later :meth:`hold` opens it again."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _opened(self) -> int:
        """Open the file. Its errors are apart from the lock's, which say that another cache holds a claim."""
        if self._file is None:
            with cache_write_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._folder / "claims", os.O_RDWR | os.O_CREAT, 0o644)
        return self._file


if sys.platform == "linux":
    #: struct flock: type, origin, start, length, process (0: the lock is the opened file's).
    _FLOCK = struct.Struct("hhqqi0q")

    def _lock(file: int, position: int) -> None:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, position, 1, 0))

    def _unlock(file: int, position: int) -> None:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, position, 1, 0))

else:

    def _lock(file: int, position: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)

    def _unlock(file: int, position: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, position)
