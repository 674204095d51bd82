"""Writing files that other processes read."""

import contextlib
import os
import re
import uuid
from pathlib import Path

#: How the name ends that a file has while it is written.
_TEMPORARY = ".tmp"
#: Bytes of a name in UTF-8: disks take 255, and endings and a temporary file's marks are added.
_LONGEST_NAME = 200
#: Names of devices, which some systems open in place of a file, with any ending.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def name_problem(value: object) -> str:
    """Say why a value cannot be the name of one file or folder in a folder of ours; empty where it can.

    Every name, key or id that was read from a file or a command line is checked by this before it becomes a part of a
    path: another one could lead out of the folder, onto a hidden file of ours, or nowhere.
    """
    if not isinstance(value, str) or not value.strip():
        return "is not blank"
    if any(sign in value for sign in "/\\") or value in (".", ".."):
        return "has neither / nor a backslash"
    if not value.isprintable():  # also half of a surrogate pair, which no file name can hold
        return "has no line break or other character that cannot be printed"
    if value != value.strip() or value.startswith(".") or value.endswith("."):
        return "neither begins with a dot or a space nor ends with one"
    if _DEVICE.fullmatch(value):
        return "is not a device's, as NUL is"
    return f"has at most {_LONGEST_NAME} bytes" if len(value.encode()) > _LONGEST_NAME else ""


def path_problem(value: object) -> str:
    """Say why a value cannot be names of folders with ``/`` between them, each checked by :func:`name_problem`."""
    parts = value.split("/") if isinstance(value, str) else [value]
    return next(filter(None, map(name_problem, parts)), "")


def remove_temporaries(folder: Path) -> None:
    """Remove what killed processes left in a folder, and below it, while they replaced a file.

    To be called by the one process that writes there.
    """
    for path in folder.rglob(f".*.????????{_TEMPORARY}"):
        with contextlib.suppress(OSError):  # leaving it is harmless
            path.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part, even with concurrent writers.

    Args:
        path: in a folder that exists.
        content: all of it.

    Raises:
        OSError: it cannot be written, and is as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{_TEMPORARY}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # where nothing can be written there is nothing to remove
            temporary.unlink(missing_ok=True)
