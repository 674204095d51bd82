"""Every reply of a backbone, stored under a hash of all that can change it.

A folder of append-only files, one per writing process (JSON lines), so that any number of processes can share it and
none can damage another's. A process reads all files when it opens the folder, and sees its own additions after that.
A process that is killed leaves at worst half a last line, which is dropped.
"""

import asyncio
import errno
import json
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from memsys.errors import BackboneError, MemsysError
from memsys.vocabulary import Completion, TokenLogprob

_PREFIX = b'{"key": "'
_KEY_LENGTH = 64  # hexadecimal digits of a sha256
_HEAD = len(_PREFIX) + _KEY_LENGTH


class _Place(NamedTuple):
    """Where a row lies: file, offset and length in bytes."""

    segment: Path
    offset: int
    length: int


class ReplyCache:
    """Replies by key, on disk; the index alone is in memory (about 250 bytes a reply).

    Args:
        folder: made when the first reply is stored.

    Attributes:
        corrupt: lines that could not be read and were left out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corrupt = 0
        self._index: dict[bytes, _Place] = {}
        self._pending: dict[str, asyncio.Future[Completion]] = {}
        self._file: int | None = None
        self._owner = 0
        self._segment = folder
        self._size = 0
        self._torn = False
        # Names begin with their time, so that of two replies to one request the earlier stays the one that is read.
        for segment in sorted(folder.glob("*.jsonl")):
            self._read_segment(segment)

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: str) -> Completion | None:
        """Look a reply up; an unreadable row counts as ``corrupt`` and as absent."""
        place = self._index.get(bytes.fromhex(key))
        if place is None:
            return None
        try:
            with place.segment.open("rb") as stream:
                stream.seek(place.offset)
                row = json.loads(stream.read(place.length))
            if row["key"] != key:
                raise ValueError("row of another key")
            return _completion(row["reply"])
        except (OSError, ValueError, KeyError, TypeError):
            self.corrupt += 1
            del self._index[bytes.fromhex(key)]
            return None

    def put(self, key: str, reply: Completion) -> None:
        """Store a reply: one line, written whole and handed to the system before this returns.

        Raises:
            MemsysError: the disk is full or the folder cannot be written.
        """
        line = json.dumps({"key": key, "reply": asdict(reply)}).encode() + b"\n"
        self._append(b"\n" + line if self._torn else line)
        place = _Place(self._segment, self._size - len(line), len(line))
        self._index.setdefault(bytes.fromhex(key), place)

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
                return await self._lead(key, call), False
            await asyncio.wait([pending])
            if not pending.cancelled():  # else the one that called was cancelled, and somebody else must call
                error = pending.exception()
                if error is not None:
                    raise BackboneError(str(error)) from error
                return pending.result(), True

    async def _lead(self, key: str, call: Callable[[], Awaitable[Completion]]) -> Completion:
        pending: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending[key] = pending
        try:
            reply = await call()
            self.put(key, reply)
            pending.set_result(reply)
        except BackboneError as error:
            pending.set_exception(error)
            pending.exception()  # retrieved: nobody need be waiting
            raise
        finally:
            del self._pending[key]
            pending.cancel()  # nothing where it has a result
        return reply

    def close(self) -> None:
        """Close the file; a later :meth:`put` opens another."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, data: bytes) -> None:
        """Append, leaving ``_size`` behind the row; a cut row is ended by the next append."""
        try:
            if self._file is None or self._owner != os.getpid():  # a forked child must not share the file
                self._open_segment()
            assert self._file is not None
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
                self._torn = True
            self._torn = False
            self._size = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = "the disk is full: free space" if full else "make it writable"
            raise MemsysError(
                f"the reply cache {self.folder} cannot be written ({error.strerror}); {advice}, or set cache_dir to "
                "another folder, then start the run again: it resumes"
            ) from error

    def _open_segment(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._segment = self.folder / f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        self._file = os.open(self._segment, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        self._owner, self._torn = os.getpid(), False

    def _read_segment(self, segment: Path) -> None:
        """Index a file by the heads of its lines; the rest of a line is read when it is asked for."""
        offset = 0
        with segment.open("rb") as stream:
            for line in stream:
                whole = line.endswith(b"}\n") and line.startswith(_PREFIX)
                key = _key(line) if whole else None
                if key is not None:
                    self._index.setdefault(key, _Place(segment, offset, len(line)))
                elif line.endswith(b"\n") and line != b"\n":
                    self.corrupt += 1  # a last line without end is what a kill leaves, and no damage
                offset += len(line)


def _key(line: bytes) -> bytes | None:
    try:
        return bytes.fromhex(line[len(_PREFIX) : _HEAD].decode("ascii"))
    except ValueError:
        return None


def _completion(row: dict[str, Any]) -> Completion:
    logprobs = tuple(TokenLogprob(**token) for token in row.pop("logprobs"))
    return Completion(**row, logprobs=logprobs)
