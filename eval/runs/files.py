"""Writing that survives a kill and a full disk: whole-line appends by one writer, and temp file plus rename."""

import errno
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from memsys.errors import RunDirectoryError, quoted
from memsys.files import replace_file

#: Bytes that are read at once where the end of a file is looked at.
_BLOCK = 1 << 16
#: What to do about a damaged line of a file that is of use only as a whole.
WHOLE = "restore the file, or delete its folder and start again"
#: Last member of a row: a checksum of the row without it. A flipped bit in an answer or an id is still valid JSON.
CHECKSUM = "crc32"
_CHECKSUM = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\s*$')


def disk_error(path: Path, error: OSError, *, resumes: bool = False) -> RunDirectoryError:
    """Say why a write has failed and what to do.

    Args:
        path: the file.
        error: what the system said.
        resumes: whether the command goes on with what is written already when it is started again.
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


def json_line(row: Any) -> bytes:
    """Encode a row as a line; that of an object ends with its checksum.

    Raises:
        TypeError, ValueError: it holds what JSON cannot.
    """
    line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if isinstance(row, Mapping) and row:
        line = line[:-1] + f',"{CHECKSUM}":"{zlib.crc32(line):08x}"}}'.encode()
    return line + b"\n"


class JsonLines:
    """Append-only JSON lines with one writer. A cut last line (a killed writer) is removed when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
            line = json_line(row)
        except (TypeError, ValueError) as error:
            raise RunDirectoryError(
                f"{self.path}: {misfit(row)} cannot be written as JSON ({error}); whoever gave it, such as a memory "
                "in its trace, scores or statistics, must give plain values"
            ) from error
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise disk_error(self.path, error, resumes=True) from error
        self._size += len(line)

    @property
    def size(self) -> int:
        """Bytes of its rows: rows are only ever added, so that a file of the same size has the same rows."""
        return self._size

    def close(self) -> None:
        """Close the file; appending afterwards is an error."""
        os.close(self._descriptor)


def misfit(value: Any, place: str = "", *, allow_nan: bool = False) -> str:
    """Place and value of the first part of a row that JSON cannot hold."""
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
    """Length of the file up to its last newline, sought from its end: a ledger may be larger than the memory."""
    with path.open("rb") as stream:
        end = stream.seek(0, os.SEEK_END)
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

    A cut last line is left out. Rows without a checksum, of older versions and other programs, are taken as they are.

    Args:
        path: the file.
        advice: what to do about a damaged line.

    Raises:
        RunDirectoryError: a line in the middle is no JSON, or nested too deeply, or its checksum is another.
    """
    if not path.is_file():
        return
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                row, altered = _read_line(line)
            except (ValueError, RecursionError) as error:
                raise RunDirectoryError(f"{path}:{number} is not JSON ({error}); {advice}") from error
            if altered:
                raise RunDirectoryError(
                    f"{path}:{number} is not as it was written (its {CHECKSUM} is of another row); {advice}; where you "
                    f"changed the line yourself, delete its {CHECKSUM}"
                )
            yield row


def _read_line(line: bytes) -> tuple[Any, bool]:
    """Parse a line; returns the row without its checksum, and whether it was altered since it was written."""
    found = _CHECKSUM.search(line)
    if found is None:
        row = json.loads(line, parse_constant=_refuse_constant)
        return row, isinstance(row, dict) and CHECKSUM in row
    written = line[: found.start()] + b"}"
    return json.loads(written, parse_constant=_refuse_constant), zlib.crc32(written) != int(found[1], 16)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
