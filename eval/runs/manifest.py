"""Integrity of stored files: a run's ``manifest.json`` has their digests.

A complete run has one; :mod:`eval.runs.signing` writes it. While a run is in progress it has none: then each
row carries a checksum that depends on the run, the file and the rows before it (:mod:`eval.runs.row_checksums`).
Everything that opens a file of a run calls :func:`check_file` first.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from memsys.errors import RunDirectoryError
from memsys.rows import RowError, record_from

MANIFEST = "manifest.json"
RUN, REFERENCES = "run.json", "references.jsonl"
#: Files that `memsys score` makes of the others.
DERIVED = ("scores.jsonl", "scores_meta.json", "summary.json")
_PRIMARY = (
    RUN, REFERENCES, "updates.jsonl", "answers.jsonl", "retrievals.jsonl", "conversations.jsonl", "calls.jsonl",
    "repeated_calls.jsonl", "embeddings.jsonl", "import.json", "settled.jsonl",
)  # fmt: skip
#: Folders of a run and the endings of the files in them that count.
_FOLDERS = {"judgements": (".json", ".jsonl"), "snapshots": (".npz",)}
#: Files that a message names, and bytes that are hashed at once.
_NAMED, _BLOCK = 3, 1 << 20

_UNCHECKED: ContextVar[Path | None] = ContextVar("unchecked", default=None)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Digests of a folder's files when they were written.

    Attributes:
        files: sha256 by path relative to the folder; a file that is not there, or empty, is not named.
        open: of files that a judge that has not finished adds to, how many of their first bytes ``files`` is of.
    """

    files: Mapping[str, str]
    open: Mapping[str, int] = field(default_factory=dict)


def check_file(path: Path) -> None:
    """Refuse to read a file of a run that is not as it was written.

    Next to the file itself, all those are checked that no command can make again from others.

    Args:
        path: of a file, which may be of no run, or missing.

    Raises:
        RunDirectoryError: names what does not fit and what to do.
    """
    folder = run_folder(path)
    if folder is not None:
        own = path.relative_to(folder).as_posix()
        _check(folder, lambda name: name == own or name not in DERIVED)


def check_folder(folder: Path) -> None:
    """Refuse a run of which any file is not as it was written.

    Raises:
        RunDirectoryError: names what does not fit and what to do.
    """
    if (folder / RUN).is_file() or (folder / MANIFEST).is_file():
        _check(folder, lambda name: True)


@contextmanager
def unchecked(folder: Path) -> Iterator[None]:
    """Let files of a folder be read as they are, for the one who is about to sign them."""
    token = _UNCHECKED.set(folder)
    try:
        yield
    finally:
        _UNCHECKED.reset(token)


def run_folder(path: Path) -> Path | None:
    """Return the folder of the run that a file belongs to; ``None`` where it belongs to none."""
    folder = path.parent.parent if path.parent.name in _FOLDERS else path.parent
    return folder if (folder / RUN).is_file() or (folder / MANIFEST).is_file() else None


def stored_run(folder: Path) -> Mapping[str, Any]:
    """Return ``run.json`` of a folder without checks; empty where none can be read."""
    return _parsed(folder / RUN) or {}


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; ``None`` where it has none.

    Raises:
        RunDirectoryError: it is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    found = _parsed(path)
    try:
        if found is None:
            raise RowError("it holds no JSON object")
        return record_from(Manifest, found)
    except RowError as error:
        raise RunDirectoryError(f"{path} is damaged ({error}); {_advice(folder, [MANIFEST])}") from error


def present(folder: Path) -> list[str]:
    """Return the files of a folder that a manifest covers, relative to it, sorted; without empty ones."""
    within = [path for name in _FOLDERS for path in (folder / name).glob("*") if path.suffix in _FOLDERS[name]]
    found = [folder / name for name in (*_PRIMARY, *DERIVED)] + [path for path in within if path.name[0] != "."]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_file() and path.stat().st_size)


def digest(path: Path, size: int | None = None) -> str:
    """Return the sha256 of a file or of its first bytes; cached while size, time and inode stay the same."""
    status = path.stat()
    return _digest(path, size, (status.st_size, status.st_mtime_ns, status.st_ino))


def _check(folder: Path, chosen: Callable[[str], bool]) -> None:
    if _UNCHECKED.get() == folder:
        return
    manifest = read_manifest(folder)
    if manifest is None:
        if stored_run(folder).get("status") == "complete":
            raise RunDirectoryError(
                f"{folder} is complete and has no {MANIFEST}: it was lost, or an earlier version wrote the folder; "
                f"restore it, or run `memsys sign {folder}`, which checks what is there"
            )
        return
    wrong = {name: problem for name, problem in _misfits(folder, manifest) if chosen(name)}
    if wrong:
        named = ", ".join(f"{name} {problem}" for name, problem in list(wrong.items())[:_NAMED])
        more = f" (and {len(wrong) - _NAMED} more files)" if len(wrong) > _NAMED else ""
        raise RunDirectoryError(f"{folder}: {named}{more}; {_advice(folder, list(wrong))}")


def _misfits(folder: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    there = set(present(folder))
    for name in sorted(there | manifest.files.keys()):
        size, known = manifest.open.get(name), manifest.files.get(name)
        if size == 0:
            continue
        if name not in there:
            yield name, f"is missing or empty, {MANIFEST} names it"
        elif known is None:
            yield name, f"is not named in {MANIFEST}"
        elif digest(folder / name, size) != known:
            yield name, f"was modified after it was written: its sha256 differs from {MANIFEST}"


def _advice(folder: Path, names: list[str]) -> str:
    if set(names) <= set(DERIVED):
        return f"run `memsys score {folder}`"
    if stored_run(folder).get("status") not in (None, "complete"):
        return "restore it, or start the run's command again: it resumes"
    return f"restore it, or run `memsys sign {folder}`, which checks what is there"


def _parsed(path: Path) -> Any:
    try:
        status = path.stat()
    except OSError:
        return None
    return _read(path, (status.st_size, status.st_mtime_ns, status.st_ino))


@lru_cache(maxsize=4096)
def _read(path: Path, state: tuple[int, int, int]) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@lru_cache(maxsize=1 << 16)
def _digest(path: Path, size: int | None, state: tuple[int, int, int]) -> str:
    found = hashlib.sha256()
    left = state[0] if size is None else size
    with path.open("rb") as stream:
        while left > 0 and (block := stream.read(min(left, _BLOCK))):
            found.update(block)
            left -= len(block)
    return found.hexdigest()
