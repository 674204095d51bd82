"""Writing files that other processes read."""

import contextlib
import os
import uuid
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part, whoever else writes it.

    Args:
        path: in a folder that exists.
        content: all of it.

    Raises:
        OSError: it cannot be written, and is as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # where nothing can be written there is nothing to remove
            temporary.unlink(missing_ok=True)
