"""Zip archives of others: members are read into memory, never written where their names say, and bombs are refused."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from memsys.errors import DataError, quoted

#: First bytes of a zip archive.
_ZIP = b"PK\x03\x04"
_ENCRYPTED = 0x1


def is_archive(source: Path) -> bool:
    """Return whether a file begins as a zip archive does.

    Raises:
        OSError: it cannot be read.
    """
    with source.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


@contextmanager
def opened_archive(source: Path, advice: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive for the block.

    Args:
        source: the archive.
        advice: what to do about one that is damaged.

    Raises:
        DataError: it is not a whole zip archive; also where the block meets the damage.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataError(f"{source}: is not a whole zip archive ({error}); {advice}") from error


def check_paths(source: Path, members: Sequence[zipfile.ZipInfo], expected: str) -> None:
    """Refuse an archive that was made to write outside of the folder that it is unpacked in.

    Args:
        source: the archive.
        members: of it.
        expected: what no such archive is, as ``an export``.

    Raises:
        DataError: a member's path leads out of it.
    """
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(
                f"{source}: holds a file outside of itself, {quoted(member.filename, 80)}; it is not {expected}"
            )


def unpacked_bytes(members: Sequence[zipfile.ZipInfo]) -> int:
    """Return the bytes that members say they unpack to, which is the most that reading them gives."""
    return sum(member.file_size for member in members)


def any_encrypted(members: Sequence[zipfile.ZipInfo]) -> bool:
    """Return whether some member needs a password."""
    return any(member.flag_bits & _ENCRYPTED for member in members)
