"""The files of an export: one file, a folder, or a zip archive, whose members are read and never written to disk."""

import re
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.archives import any_encrypted, check_paths, is_archive, opened_archive, unpacked_bytes
from eval.loaders.jsonfile import is_empty
from memsys.errors import DataError, quoted

#: Members of an archive; ChatGPT's of ten years have some thousand pictures.
_MOST_MEMBERS = 200_000
#: Bytes of the texts of an export, of all its files together, once they are unpacked.
_MOST_BYTES = 1 << 30
#: Bytes of a file that may be nothing but white space.
_SMALL = 4096
#: What macOS adds to folders and archives: notes on files, under the files' names.
_OF_MACOS = re.compile(r"(^|/)(__MACOSX/|\._)")
_GIVE_FOLDER = "unpack it and name the folder, or the file that holds the chats"


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One text file of an export; ``path`` is where it is, in an archive behind the archive's own path."""

    path: Path
    content: bytes


def check_source(source: Path, expected: str) -> None:
    """Refuse what is not there, is empty, or is larger than any text that is read.

    Raises:
        DataError: it is; says what was expected.
    """
    try:
        size = None if source.is_dir() else source.stat().st_size
        if size is not None and not is_archive(source):
            _check_size(source, size)
    except OSError as error:
        raise DataError(f"{source}: cannot be read ({error.strerror}); check the path") from error
    if size is not None and size < _SMALL and is_empty(source):
        raise DataError(f"{source}: is empty; expected {expected}")


def files_of_export(source: Path, names: str) -> list[ExportFile]:
    """Read the files of an export.

    Args:
        source: a file, which is read whatever its name is, a folder, or a zip archive.
        names: pattern of the wanted files' paths in a folder or archive.

    Returns:
        The files in the order of their paths.

    Raises:
        DataError: nothing is there or can be read, or it is larger than any export.
    """
    try:
        if source.is_dir():
            return _of_folder(source, names)
        if is_archive(source):
            return _of_archive(source, names)
        _check_size(source, source.stat().st_size)
        return [ExportFile(source, source.read_bytes())]
    except OSError as error:
        raise DataError(f"{source}: cannot be read ({error.strerror}); check the path") from error


def _check_size(source: Path, size: int) -> None:
    if size > _MOST_BYTES:
        raise DataError(
            f"{source}: holds {size >> 20} MiB of text unpacked, more than the {_MOST_BYTES >> 20} MiB that are read; "
            "convert it in parts"
        )


def _of_folder(source: Path, names: str) -> list[ExportFile]:
    inside = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
    inside = {name: path for name, path in inside.items() if not _OF_MACOS.search(name)}
    wanted = [path for name, path in sorted(inside.items()) if re.search(names, name)]
    _check_size(source, sum(path.stat().st_size for path in wanted))
    return _some(source, [ExportFile(path, path.read_bytes()) for path in wanted], list(inside))


def _of_archive(source: Path, names: str) -> list[ExportFile]:
    with opened_archive(source, f"fetch it again, or {_GIVE_FOLDER}") as archive:
        members = [one for one in archive.infolist() if not (one.is_dir() or _OF_MACOS.search(one.filename))]
        if len(members) > _MOST_MEMBERS:
            raise DataError(f"{source}: holds {len(members)} files, more than the {_MOST_MEMBERS} of any export")
        check_paths(source, members, "an export")
        wanted = sorted((one for one in members if re.search(names, one.filename)), key=lambda one: one.filename)
        _check_size(source, unpacked_bytes(wanted))
        if any_encrypted(wanted):
            raise DataError(f"{source}: is encrypted; {_GIVE_FOLDER}")
        files = [ExportFile(source / member.filename, archive.read(member)) for member in wanted]
    return _some(source, files, [member.filename for member in members])


def _some(source: Path, files: list[ExportFile], inside: list[str]) -> list[ExportFile]:
    if files:
        return files
    packed = next((name for name in inside if name.lower().endswith(".zip")), None)
    if packed:
        raise DataError(f"{source}: holds another archive, {quoted(packed, 80)}; unpack that one and name it")
    first = ", ".join(quoted(name, 60) for name in inside[:3])
    raise DataError(f"{source}: holds no file with chats of this format; there are {len(inside)} files, {first} ...")
