"""The memory snapshots of a run: one file per conversation, which says whose memory it holds and of which run."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from eval.runs.snapshot import load_snapshot, save_snapshot
from memsys.errors import RunDirectoryError
from memsys.rows import RowError, record_from

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
#: Characters of a name without its suffix; disks take 255 bytes, and writing adds ten characters and ``.tmp``.
_LONGEST = 200
#: Characters of a file name that disks take.
_LONGEST_EVER = 255
_SUFFIX = ".npz"


def snapshot_name(conversation_id: str) -> str:
    """Return the file name of a conversation's snapshot; two ids never share one, also where a disk ignores case.

    Small letters, digits, ``-`` and ``_`` stay as they are, every other byte of the id's UTF-8 form is written as
    ``%`` and two small hexadecimal digits. An empty id is ``%``. An id whose name would be too long is cut, and ``%-``
    and the sha256 of the whole id follow.
    """
    raw = conversation_id.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02x}" for byte in raw) or "%"
    if len(name) > _LONGEST:
        digest = hashlib.sha256(raw).hexdigest()
        name = f"{name[: _LONGEST - len(digest) - 2]}%-{digest}"
    return name + _SUFFIX


def earlier_name(conversation_id: str) -> str:
    """Return the name that earlier versions gave; ids that differ in punctuation alone shared one."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in conversation_id) + _SUFFIX


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One conversation's memory and how far it got.

    Attributes:
        position: units written.
        consolidated: the memory is ready for questions.
        memory: the system's state.
        prepare_seconds: of each unit written.
        write_seconds: of each unit written.
        consolidate_seconds: of the last step.
        ingest_seconds: wall time until the snapshot.
    """

    position: int
    consolidated: bool
    memory: Mapping[str, Any]
    prepare_seconds: Sequence[float]
    write_seconds: Sequence[float]
    consolidate_seconds: float
    ingest_seconds: float


@dataclass(frozen=True, slots=True)
class _Owned(Snapshot):
    """A snapshot as its file holds it; files of earlier versions do not name their owner."""

    conversation_id: str | None = None
    run: str | None = None


class Snapshots:
    """Snapshots of a run's conversations.

    A file names its conversation and the checksum of its run's settings, data and model, and nothing else is loaded.
    A file of an earlier version names neither; it is loaded where only one conversation of the run can have written
    it.

    Args:
        folder: of the files.
        run: checksum of what makes the run this one.
        conversation_ids: all conversations of the run.
    """

    def __init__(self, folder: Path, run: str, conversation_ids: Iterable[str]) -> None:
        self._folder, self._run = folder, run
        self._sharing: dict[str, list[str]] = defaultdict(list)
        for conversation_id in conversation_ids:
            self._sharing[earlier_name(conversation_id).casefold()].append(conversation_id)

    def path(self, conversation_id: str) -> Path:
        """Return the file of one conversation."""
        return self._folder / snapshot_name(conversation_id)

    def lacks(self, conversation_id: str) -> bool:
        """Return whether the conversation's memory has no snapshot file."""
        return not self.path(conversation_id).is_file() and self._earlier(conversation_id) is None

    def save(self, conversation_id: str, snapshot: Snapshot) -> None:
        """Write a snapshot, replacing the conversation's last one.

        Raises:
            RunDirectoryError: the disk is full.
        """
        tree = {field.name: getattr(snapshot, field.name) for field in fields(Snapshot)}
        save_snapshot(self.path(conversation_id), {**tree, "conversation_id": conversation_id, "run": self._run})

    def load(self, conversation_id: str) -> Snapshot | None:
        """Read a conversation's snapshot; ``None`` when there is none.

        Raises:
            RunDirectoryError: the file is damaged, of another conversation or run, or does not say whose it is.
        """
        path = self.path(conversation_id)
        found = _read(path)
        if found is None:
            path = self._earlier(conversation_id) or path
            found = _read(path)
            if found is None or found.conversation_id is not None:  # a later version wrote it for another conversation
                return None
        self._check(conversation_id, path, found)
        return found

    def check_earlier(self) -> None:
        """Refuse a run of an earlier version whose conversations shared a file.

        Raises:
            RunDirectoryError: names file and conversations.
        """
        for group in self._sharing.values():
            for conversation_id in group if len(group) > 1 else ():
                path = self._earlier(conversation_id)
                found = None if path is None else _read(path)
                if path is not None and found is not None and found.conversation_id is None:
                    self._check(conversation_id, path, found)

    def _earlier(self, conversation_id: str) -> Path | None:
        name = earlier_name(conversation_id)
        path = self._folder / name
        return path if len(name.encode("utf-8", "surrogatepass")) <= _LONGEST_EVER and path.is_file() else None

    def _sharers(self, conversation_id: str, path: Path) -> list[str]:
        """Return the conversations whose former file name is this file, also by case on file systems that ignore it."""
        group = self._sharing[earlier_name(conversation_id).casefold()]
        return [name for name in group if (other := self._earlier(name)) is not None and other.samefile(path)]

    def _check(self, conversation_id: str, path: Path, found: _Owned) -> None:
        shared = self._sharers(conversation_id, path)
        if found.conversation_id is None and len(shared) > 1:
            raise RunDirectoryError(
                f"memory snapshot {path} was written by an earlier version under a name that the conversations "
                f"{', '.join(map(repr, shared))} shared, so that questions may have been answered from the wrong "
                "memory; delete the run directory and start the same command again (the reply cache keeps the calls)"
            )
        if found.conversation_id not in (None, conversation_id):
            raise RunDirectoryError(
                f"memory snapshot {path} holds the memory of conversation {found.conversation_id!r}, not of "
                f"{conversation_id!r}; delete it and start the same command again"
            )
        if found.run not in (None, self._run):
            raise RunDirectoryError(
                f"memory snapshot {path} is of a run with other settings, data or model; delete it and start the same "
                "command again"
            )


def _read(path: Path) -> _Owned | None:
    tree = load_snapshot(path)
    if tree is None:
        return None
    try:
        return record_from(_Owned, tree)
    except RowError as error:
        message = f"memory snapshot {path} is damaged ({error}); delete it and start the same command again"
        raise RunDirectoryError(message) from error
