"""Every reply of a backbone, stored under a hash of all that can change it.

A folder of append-only files, one per writing process (JSON lines), so that any number of processes can share it and
none can damage another's. A process reads all files when it opens the folder, and sees its own additions after that.
A process that is killed leaves at worst half a last line, which is dropped.

``shared`` is for jobs that write at the same time, on one machine or on the shared disk of a cluster: what others have
added is read whenever a reply is not known yet, and a call is claimed before it is made, so that of all jobs one pays
for it and all get the same reply. A claim is a lock on one byte of a file: it ends with the process that holds it,
however that ends, and leaves nothing to clean up. The byte itself says whether a call was begun under it before: only
then its reply has to be looked for.

A row ends with a checksum of its key and reply: one that was altered, or is of another shape, is left out and its call
made again. Rows of earlier versions have no checksum and are checked for their shape alone: nothing could tell an
altered one, and to refuse them all would mean to pay for them again.
"""

import asyncio
import errno
import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from memsys.errors import BackboneError, MemsysError
from memsys.rows import record_from
from memsys.segments import segment_name
from memsys.vocabulary import Completion

logger = logging.getLogger(__name__)

_PREFIX = b'{"key": "'
_KEY_LENGTH = 64  # hexadecimal digits of a sha256
_HEAD = len(_PREFIX) + _KEY_LENGTH
_SUM = b', "sum": "'
_SUM_BYTES = 8
#: Bytes of a row behind its reply: the checksum in hexadecimal digits, and what closes the row.
_TAIL = len(_SUM) + 2 * _SUM_BYTES + len(b'"}\n')

#: Seconds between two looks for what other jobs have added: each costs one listing and one ``stat`` per job.
_LOOK_SECONDS = 5.0
#: Seconds until one that waits for another's call tries again, at first and at most.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
#: Bytes of the file of claims, one for each class of keys: many enough that two calls in flight rarely share one.
_CLAIMS = 1 << 24
_BEGUN = b"\1"


class _RowPlace(NamedTuple):
    """Where a row lies: file, offset and length in bytes."""

    segment: Path
    offset: int
    length: int


class _Claim(NamedTuple):
    """A byte of the file of claims while we hold the lock on it."""

    file: int
    position: int

    def begun(self) -> bool:
        """Whether a call was begun under it before, ours or one of its class."""
        return os.pread(self.file, 1, self.position) == _BEGUN

    def begin(self) -> None:
        """Note that one is. Before the call: one killed right after it stored its reply has left the note."""
        os.pwrite(self.file, _BEGUN, self.position)


class ReplyCache:
    """Replies by key, on disk; the index alone is in memory (about 250 bytes a reply).

    Args:
        folder: made when the first reply is stored.
        shared: other processes write here at the same time: see their replies as they come, pay each call once.

    Attributes:
        corrupt: lines that could not be read and were left out.
    """

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.shared = shared
        self.corrupt = 0
        self._index: dict[bytes, _RowPlace] = {}
        self._others: dict[bytes, list[_RowPlace]] = {}  # further rows of a key, for when the first is damaged
        self._pending: dict[str, asyncio.Future[Completion]] = {}
        self._file: int | None = None
        self._owner = 0
        self._segment = folder
        self._size = 0
        self._torn = False
        self._read: dict[Path, int] = {}  # how far other processes' files have been read
        self._claims: int | None = None
        self._looked = 0.0
        self._look()

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: str) -> Completion | None:
        """Look a reply up; an unreadable or altered row counts as ``corrupt`` and as absent."""
        digest = bytes.fromhex(key)
        while (place := self._index.get(digest)) is not None:
            try:
                with place.segment.open("rb") as stream:
                    stream.seek(place.offset)
                    return _read_row(stream.read(place.length), key)
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
        line = _written_row(key, reply)
        self._append(b"\n" + line if self._torn else line)
        place = _RowPlace(self._segment, self._size - len(line), len(line))
        self._note(bytes.fromhex(key), place)

    async def fetch(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Give the stored reply, wait for an equal request in flight, or make the call and store its reply.

        Returns:
            The reply, and whether it came without a call of our own.
        """
        while True:
            known = self.get(key)
            if known is not None:
                return known, True
            pending = self._pending.get(key)
            if pending is None:
                return await self._lead(key, call)
            await asyncio.wait([pending])
            if not pending.cancelled():  # else the one that called was cancelled, and somebody else must call
                error = pending.exception()
                if error is not None:
                    raise type(error)(str(error)) from error  # of its own, since each of those that wait adds its place
                return pending.result(), True

    async def _lead(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Make a call for all tasks of this process that want it."""
        pending: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending[key] = pending
        try:
            reply, hit = await (self._claim_and_call(key, call) if self.shared else self._call(key, call))
            pending.set_result(reply)
        except BackboneError as error:
            pending.set_exception(error)
            pending.exception()  # retrieved: nobody need be waiting
            raise
        finally:
            del self._pending[key]
            pending.cancel()  # nothing where it has a result
        return reply, hit

    async def _call(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        reply = await call()
        self.put(key, reply)
        return reply, False

    async def _claim_and_call(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Make a call that no other process makes, or take the reply of the one that does."""
        pause = _FIRST_PAUSE
        while True:
            self._look(after=_LOOK_SECONDS)
            known = self.get(key)
            if known is not None:
                return known, True
            async with self._claim(key) as claim:
                if claim is not None:
                    if claim.begun():
                        self._look()  # whoever held the claim before has stored its reply by now
                        known = self.get(key)
                        if known is not None:
                            return known, True
                    else:
                        with self._writing():
                            claim.begin()
                    made = await self._call(key, call)
                    assert self._file is not None
                    # Other machines read what has reached the disk; network disks say only then that they are full.
                    with self._writing():
                        await asyncio.to_thread(os.fdatasync, self._file)
                    return made
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    @asynccontextmanager
    async def _claim(self, key: str) -> AsyncIterator["_Claim | None"]:
        """Hold the claim on a call; ``None`` if another process holds it."""
        position = int(key, 16) % _CLAIMS
        if self._claims is None:
            # Apart from the lock: a file that we may not open must not pass for a claim that another process holds.
            with self._writing():
                self.folder.mkdir(parents=True, exist_ok=True)
                self._claims = os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        except (BlockingIOError, PermissionError):  # how systems say that another process holds it
            yield None
            return
        except OSError as error:
            raise MemsysError(
                f"the disk of the reply cache {self.folder} cannot lock files ({error.strerror}), so that jobs cannot "
                "share calls there; set cache_dir to a folder on a disk that can, or cache_shared=false"
            ) from error
        try:
            yield _Claim(self._claims, position)
        finally:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, position)

    def close(self) -> None:
        """Close the files; a later :meth:`put` opens another."""
        for file in (self._file, self._claims):
            if file is not None:
                os.close(file)
        self._file = self._claims = None

    def _append(self, data: bytes) -> None:
        """Append, leaving ``_size`` behind the row; a cut row is ended by the next append."""
        with self._writing():
            if self._file is None or self._owner != os.getpid():  # a forked child must not share the file
                self._open_segment()
            assert self._file is not None
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
                self._torn = True
            self._torn = False
            self._size = os.lseek(self._file, 0, os.SEEK_END)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say what a failed write means and what to do."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = "the disk is full: free space" if full else "make it writable"
            raise MemsysError(
                f"the reply cache {self.folder} cannot be written ({error.strerror}); {advice}, or set cache_dir to "
                "another folder, then start the run again: it resumes"
            ) from error

    def _open_segment(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._segment = self.folder / segment_name(".jsonl")
        self._file = os.open(self._segment, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        self._owner, self._torn = os.getpid(), False

    def _look(self, after: float = 0.0) -> None:
        """Index what other processes have added since the last look, unless that was less than ``after`` seconds ago.

        Names begin with their time, so that of two replies to one request the earlier stays the one that is read.
        """
        now = time.monotonic()
        if self._looked and now - self._looked < after:
            return
        self._looked = now
        for segment in sorted(self.folder.glob("*.jsonl")):
            begin = self._read.get(segment, 0)
            if segment != self._segment and segment.stat().st_size > begin:
                self._read[segment] = self._read_segment(segment, begin)

    def _note(self, key: bytes, place: _RowPlace) -> None:
        """Index a row; the first of a key stays the one that is read."""
        if self._index.setdefault(key, place) is not place:
            self._others.setdefault(key, []).append(place)

    def _read_segment(self, segment: Path, offset: int) -> int:
        """Index a file by the heads of its lines; the rest of a line is read when it is asked for.

        Returns:
            Where the next look begins: behind the last line that has an end.
        """
        with segment.open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # being written, or what a kill has left: no damage
                key = _key(line) if line.endswith(b"}\n") and line.startswith(_PREFIX) else None
                if key is not None:
                    self._note(key, _RowPlace(segment, offset, len(line)))
                elif line != b"\n":
                    self.corrupt += 1
                offset += len(line)
        return offset


def _key(line: bytes) -> bytes | None:
    try:
        return bytes.fromhex(line[len(_PREFIX) : _HEAD].decode("ascii"))
    except ValueError:
        return None


def _written_row(key: str, reply: Completion) -> bytes:
    fields = asdict(reply)
    if not reply.tool_calls:  # only programs behind the proxy have tools
        del fields["tool_calls"]
    row = _PREFIX + key.encode() + b'", "reply": ' + json.dumps(fields, allow_nan=False).encode()
    return row + _SUM + _checksum(row) + b'"}\n'


def _read_row(line: bytes, key: str) -> Completion:
    """Read a row.

    Raises:
        ValueError: it is no row of this key, or was altered.
    """
    if line[-_TAIL:].startswith(_SUM) and line[-_TAIL + len(_SUM) : -3] != _checksum(line[:-_TAIL]):
        raise ValueError("its checksum is another")
    row = json.loads(line)
    if not isinstance(row, dict) or row.get("key") != key or not set(row) <= {"key", "reply", "sum"}:
        raise ValueError("it is no row of this key")
    if "sum" in row and not line[-_TAIL:].startswith(_SUM):
        raise ValueError("its checksum is not at its end")
    return record_from(Completion, row.get("reply"))


def _checksum(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=_SUM_BYTES).hexdigest().encode()
