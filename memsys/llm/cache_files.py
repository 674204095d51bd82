"""The files of the reply cache: append-only, one per writing process, with an index of their rows in memory.

Any number of processes can share the folder, and none can damage another's file. A process that is killed leaves at
worst half a last line, which is dropped.
"""

import errno
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from memsys.errors import MemsysError
from memsys.llm.cache_rows import key_of_row, read_row, written_row
from memsys.unique_names import segment_name
from memsys.vocabulary import Completion

logger = logging.getLogger(__name__)


class _RowPlace(NamedTuple):
    """Position of a row: file, offset and length in bytes."""

    segment: Path
    offset: int
    length: int


@contextmanager
def cache_write_errors(folder: Path) -> Iterator[None]:
    """Turn a failed write to the reply cache into a message that says what to do.

    Args:
        folder: of the cache, for the message.

    Raises:
        MemsysError: the disk is full or the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "the disk is full: free space" if full else "make it writable"
        raise MemsysError(
            f"the reply cache {folder} cannot be written ({error.strerror}); {advice}, or set cache_dir to "
            "another folder, then start the run again: it resumes"
        ) from error


class ReplyFiles:
    """Stored replies by key; the index alone is in memory (about 250 bytes a reply).

    Args:
        folder: made when the first reply is stored.

    Attributes:
        corrupt: lines that could not be read and were left out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corrupt = 0
        self._index: dict[bytes, _RowPlace] = {}
        self._others: dict[bytes, list[_RowPlace]] = {}  # further rows of a key, for when the first is damaged
        self._file: int | None = None
        self._owner = 0
        self._segment = folder
        self._size = 0
        self._torn = False
        self._read: dict[Path, int] = {}  # how far other processes' files have been read
        self._refreshed = 0.0
        self.refresh()

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: str) -> Completion | None:
        """Look a reply up; an unreadable or altered row counts as ``corrupt`` and as absent."""
        digest = bytes.fromhex(key)
        while (place := self._index.get(digest)) is not None:
            try:
                with place.segment.open("rb") as stream:
                    stream.seek(place.offset)
                    return read_row(stream.read(place.length), key)
            except (OSError, ValueError, RecursionError) as error:
                self._leave_out(digest, place, error)
        return None

    def _leave_out(self, digest: bytes, place: _RowPlace, error: Exception) -> None:
        """Forget a damaged row; the next one of its key takes its place, if there is one."""
        self.corrupt += 1
        logger.warning(
            "reply cache: %s, the row at byte %d is damaged (%s) and left out; its call is made again",
            place.segment, place.offset, error,
        )  # fmt: skip
        following = self._others.get(digest)
        if following:
            self._index[digest] = following.pop(0)
        else:
            del self._index[digest]

    def put(self, key: str, reply: Completion) -> None:
        """Store a reply: one line, written whole and handed to the system before this returns.

        Raises:
            MemsysError: the disk is full or the folder cannot be written.
        """
        line = written_row(key, reply)
        self._append(b"\n" + line if self._torn else line)
        place = _RowPlace(self._segment, self._size - len(line), len(line))
        self._note(bytes.fromhex(key), place)

    def flush(self) -> None:
        """Wait until our rows are on the disk, where other machines read them.

        Raises:
            MemsysError: the disk is full, which a network disk may report only here.
        """
        if self._file is not None:
            with cache_write_errors(self.folder):
                os.fdatasync(self._file)

    def close(self) -> None:
        """Close our file; a later :meth:`put` opens another."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _append(self, data: bytes) -> None:
        """Append, leaving ``_size`` behind the row; a cut row is ended by the next append."""
        with cache_write_errors(self.folder):
            if self._file is None or self._owner != os.getpid():  # a forked child must not share the file
                self._open_segment()
            assert self._file is not None
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
                self._torn = True
            self._torn = False
            self._size = os.lseek(self._file, 0, os.SEEK_END)

    def _open_segment(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._segment = self.folder / segment_name(".jsonl")
        self._file = os.open(self._segment, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        self._owner, self._torn = os.getpid(), False

    def refresh(self, after: float = 0.0) -> None:
        """Index rows that other processes added since the last call, unless that was less than ``after`` seconds ago.

        Names begin with their time, so that of two replies to one request the earlier stays the one that is read.
        """
        now = time.monotonic()
        if self._refreshed and now - self._refreshed < after:
            return
        self._refreshed = now
        for segment in sorted(self.folder.glob("*.jsonl")):
            begin = self._read.get(segment, 0)
            if segment != self._segment and segment.stat().st_size > begin:
                self._read[segment] = self._read_segment(segment, begin)

    def _note(self, key: bytes, place: _RowPlace) -> None:
        """Index a row; of several with one key the first is read."""
        if self._index.setdefault(key, place) is not place:
            self._others.setdefault(key, []).append(place)

    def _read_segment(self, segment: Path, offset: int) -> int:
        """Index a file by the heads of its lines; the rest of a line is read on request.

        Returns:
            Where the next reading begins: behind the last line that has an end.
        """
        with segment.open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # being written, or what a kill has left: no damage
                key = key_of_row(line)
                if key is not None:
                    self._note(key, _RowPlace(segment, offset, len(line)))
                elif line != b"\n":
                    self.corrupt += 1
                offset += len(line)
        return offset
