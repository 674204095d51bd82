"""Writing that survives a kill and a full disk: whole-line appends by one writer, and temp file plus rename."""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from eval.runs.manifest import check_file
from eval.runs.row_checksums import CHECKSUM, first_link, last_link, read_line, row_line
from memsys.errors import RunDirectoryError, quoted
from memsys.files import replace_file

#: Bytes that are read at once where the end of a file is looked at.
_BLOCK = 1 << 16
#: What to do about a damaged line of a file that is of use only as a whole.
WHOLE = "restore the file, or delete its folder and start again"


def disk_error(path: Path, error: OSError, *, resumes: bool = False) -> RunDirectoryError:
    """Say why a write has failed and what to do.

    Args:
        path: the file.
        error: what the system said.
        resumes: whether the command continues with what is written already when it is started again.
    """
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "the disk is full; free some space" if full else f"{error.strerror}; check the folder"
    again = "start the same command again" + (", it resumes" if resumes else "")
    return RunDirectoryError(f"cannot write {path}: {hint} and {again}")


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file, and the folders above it, so that a reader sees the old content or the new, never a part.

    Raises:
        RunDirectoryError: the disk is full or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise disk_error(path, error) from error


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically: sorted keys, indented, newline at the end."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode())


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write the rows of a JSON-lines file atomically, each with its checksum.

    Raises:
        RunDirectoryError: the disk is full or the folder cannot be written.
        TypeError, ValueError: a row holds what JSON cannot.
    """
    write_atomic(path, row_lines(path, rows))


def row_lines(path: Path, rows: Iterable[Any]) -> bytes:
    """Return the content of a JSON-lines file that holds these rows and no others."""
    link, lines = first_link(path), []
    for row in rows:
        line, link = row_line(row, link)
        lines.append(line)
    return b"".join(lines)


class JsonLines:
    """Append-only JSON lines with one writer. A cut last line (a killed writer) is removed when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._link: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._size = _whole_lines(path)
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            raise disk_error(path, error, resumes=True) from error

    def append(self, row: Any) -> None:
        """Append one row; on failure the file is as it was.

        Raises:
            RunDirectoryError: the disk is full, or the row holds what no JSON can: a memory may give anything.
        """
        try:
            line, following = row_line(row, self._next_link())
        except (TypeError, ValueError) as error:
            raise RunDirectoryError(
                f"{self.path}: {misfit(row)} cannot be written as JSON ({error}); trace, scores and statistics "
                "of a memory must be plain values"
            ) from error
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise disk_error(self.path, error, resumes=True) from error
        self._size += len(line)
        self._link = following

    def _next_link(self) -> int | None:
        """Return the checksum that the next row continues; of a first row that of the run's ``run.json``."""
        if self._link is None:
            first = first_link(self.path)
            self._link = first if first is None or not self._size else last_link(_last_line(self.path, self._size))
        return self._link

    @property
    def size(self) -> int:
        """Bytes of its rows: rows are only ever added, so that a file of the same size has the same rows."""
        return self._size

    def close(self) -> None:
        """Close the file; appending afterwards is an error."""
        os.close(self._descriptor)


def misfit(value: Any, place: str = "", *, allow_nan: bool = False) -> str:
    """Return the place and value of the first part of a row that JSON cannot hold."""
    if isinstance(value, dict):
        parts = [(part, f"{place}.{key}" if place else str(key)) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(part, f"{place}[{number}]") for number, part in enumerate(value)]
    else:
        return f"{place or 'the row'}={quoted(value, 80)}"
    for part, where in parts:
        try:
            json.dumps(part, ensure_ascii=False, allow_nan=allow_nan).encode()
        except (TypeError, ValueError):
            return misfit(part, where, allow_nan=allow_nan)
    return place or "the row"


def _whole_lines(path: Path) -> int:
    """Return the length of the file up to its last newline, read from its end: a ledger may exceed the memory."""
    with path.open("rb") as stream:
        return _behind_newline(stream, stream.seek(0, os.SEEK_END))


def _last_line(path: Path, size: int) -> bytes:
    """Return the last line of a file of this many bytes, which ends with a newline."""
    with path.open("rb") as stream:
        begin = _behind_newline(stream, size - 1)
        stream.seek(begin)
        return stream.read(size - begin)


def _behind_newline(stream: BinaryIO, end: int) -> int:
    """Return the offset behind the last newline before an offset."""
    while end:
        begin = max(0, end - _BLOCK)
        stream.seek(begin)
        newline = stream.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def rows_done(run_dir: Path, mode: str) -> int:
    """Count the questions of a run that need not be asked again, by the lines of its files."""
    names = ("retrievals.jsonl",) if mode == "retrieval_only" else ("answers.jsonl", "settled.jsonl")
    files = [run_dir / name for name in names]
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file())


def read_json_lines(path: Path, advice: str = WHOLE) -> Iterator[Any]:
    """Yield the rows of a JSON-lines file without their checksums; none when it does not exist.

    A cut last line is left out. Rows without a checksum are taken as they are in files of no run, and in runs that an
    older version or another program began.

    Args:
        path: the file.
        advice: what to do about a damaged line.

    Raises:
        RunDirectoryError: the file is not as its run left it, or a line in the middle is not JSON, is nested too deeply
            or has another checksum.
    """
    check_file(path)
    if not path.is_file():
        return
    link = first_link(path)
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                row, altered, link = read_line(line, link)
            except (ValueError, RecursionError) as error:
                raise RunDirectoryError(f"{path}:{number} is not JSON ({error}); {advice}") from error
            if altered:
                own = f"; where you changed the line yourself, delete its {CHECKSUM}" if link is None else ""
                raise RunDirectoryError(f"{path}:{number} was modified after it was written ({altered}); {advice}{own}")
            yield row
