"""Checksums of files; those of large ones are remembered while the file is unchanged."""

import hashlib
import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from memsys.assets.paths import models_dir
from memsys.files import replace_file

logger = logging.getLogger(__name__)

#: Bytes up to which a file is read each time: that takes a few milliseconds.
_SMALL = 1 << 20
#: Seconds since its last change after which a file's checksum is remembered: of two changes within one tick of the
#: disk's clock, the second does not move the file's times.
_SETTLED_SECONDS = 2.0
#: What this process knows, also where the models lie in a folder that we cannot write to; by the file of its note.
_KNOWN: dict[Path, dict[str, object]] = {}


def sha256(path: Path) -> str:
    """Return the hex digest of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remembered_sha256(path: Path) -> str:
    """Return the hex digest of a file's content; an unchanged file is not read again.

    It is taken for that file while inode, size, time of modification and time of change are the same. The last of
    these moves with every write, and no program can set it back. What is remembered lies under ``models/.verified``.
    """
    status = path.stat()
    if status.st_size <= _SMALL:
        return sha256(path)
    note = _note_of(path)
    known = _KNOWN.get(note) or read_note(note)
    if known.get("stamp") == _stamp(status) and isinstance(known.get("sha256"), str):
        return str(known["sha256"])
    digest = sha256(path)
    if _stamp(path.stat()) == _stamp(status) and time.time() - status.st_ctime > _SETTLED_SECONDS:
        _KNOWN[note] = {"stamp": _stamp(status), "sha256": digest}
        _write_note(note, _KNOWN[note])
    return digest


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _note_of(path: Path) -> Path:
    name = hashlib.blake2b(os.fsencode(path.resolve()), digest_size=16).hexdigest()
    return models_dir() / ".verified" / "files" / f"{name}.json"


def read_note(note: Path) -> dict[str, object]:
    """Return what was noted about files; nothing where the note is missing or damaged."""
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_note(note: Path, content: Mapping[str, object]) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        replace_file(note, json.dumps(content).encode())
    except OSError as error:  # the models may lie in a folder that we cannot write to
        logger.debug("the checksum of a file cannot be remembered: %s", error)
