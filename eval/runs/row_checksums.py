"""The checksum at the end of a stored row: of the row alone, or chained to the rows before it and to its run.

In a run whose ``run.json`` says ``row_checksums: chained`` the checksum of a row continues that of the row before, and
that of the first row continues one of the run's identity, its start and the file's name. A row that was changed,
deleted, repeated, moved or taken from another run or file then fits nowhere, and one without a checksum is damaged.
"""

import json
import re
import zlib
from pathlib import Path
from typing import Any, Literal, NoReturn

from eval.runs.manifest import RUN, run_folder, stored_run
from memsys.errors import RunDirectoryError

RowChecksums = Literal["each", "chained"]
#: Last member of a row. A flipped bit in an answer or an id is still valid JSON.
CHECKSUM = "crc32"
_CHECKSUM = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\s*$')


def first_link(path: Path) -> int | None:
    """Return the checksum that a file's first row continues; ``None`` where rows are not chained.

    Raises:
        RunDirectoryError: the run's record is damaged.
    """
    folder = run_folder(path)
    if folder is None:
        return None
    record = stored_run(folder)
    if not record and (folder / RUN).is_file():
        raise RunDirectoryError(f"{folder / RUN} is not JSON; restore it, or delete its folder and start again")
    if record.get("row_checksums") != "chained":
        return None
    whose = [record.get("identity"), record.get("started"), path.relative_to(folder).as_posix()]
    return zlib.crc32(json.dumps(whose, sort_keys=True).encode())


def row_line(row: Any, link: int | None) -> tuple[bytes, int | None]:
    """Encode a row as a line, that of an object with its checksum.

    Args:
        row: what JSON can hold.
        link: what the checksum continues; ``None`` where rows are not chained.

    Returns:
        The line and what the next row continues.

    Raises:
        TypeError, ValueError: it holds what JSON cannot.
    """
    line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if not isinstance(row, dict) or not row:
        return line + b"\n", link
    checksum = zlib.crc32(line, link or 0)
    return line[:-1] + f',"{CHECKSUM}":"{checksum:08x}"}}\n'.encode(), None if link is None else checksum


def last_link(line: bytes) -> int | None:
    """Return the checksum that the next row continues; ``None`` where this row has none."""
    found = _CHECKSUM.search(line)
    return None if found is None else int(found[1], 16)


def read_line(line: bytes, link: int | None) -> tuple[Any, str, int | None]:
    """Parse a line.

    Args:
        line: with its end.
        link: what its checksum must continue; ``None`` where rows are not chained.

    Returns:
        The row without its checksum, what is wrong with the checksum (empty: nothing), and what the next row continues.

    Raises:
        ValueError, RecursionError: it is not JSON, or nested too deeply.
    """
    found = _CHECKSUM.search(line)
    if found is None:
        row = _DECODER.decode(line.decode())
        damaged = link is not None or (isinstance(row, dict) and CHECKSUM in row)
        return row, f"it has no {CHECKSUM}" if damaged else "", link
    written, checksum = line[: found.start()] + b"}", int(found[1], 16)
    row = _DECODER.decode(written.decode())
    if zlib.crc32(written, link or 0) == checksum:
        return row, "", None if link is None else checksum
    of = "of another row" if link is None else f"of another row, place, file or run, or {RUN} was changed"
    return row, f"its {CHECKSUM} is {of}", link


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # json.loads would make one for each row
