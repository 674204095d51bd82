"""Writing ``manifest.json``: when a run is finished, and when a command adds to it or replaces a file."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eval.runs.files import write_json
from eval.runs.manifest import DERIVED, MANIFEST, RUN, Manifest, digest, present, read_manifest


def sign_folder(folder: Path) -> None:
    """Sign all files of a folder as they are now.

    Raises:
        RunDirectoryError: the manifest cannot be written.
    """
    _write(folder, Manifest({name: digest(folder / name) for name in present(folder)}))


def sign_files(folder: Path, names: Iterable[str], dropped: Iterable[str] = ()) -> None:
    """Sign some files as they are now; an incomplete run, which has no manifest, gets none.

    Args:
        folder: of a run.
        names: files that were written, relative to the folder; nothing may add to them from now on.
        dropped: files that are out of date.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return
    names, there = list(names), set(present(folder))
    files = {name: known for name, known in manifest.files.items() if name not in {*names, *dropped}}
    files |= {name: digest(folder / name) for name in names if name in there}
    _write(folder, Manifest(files, {name: size for name, size in manifest.open.items() if name not in names}))


def open_files(folder: Path, added_to: Iterable[str], replaced: Iterable[str]) -> None:
    """Let a command that may be killed write files until :func:`sign_files` names them.

    Args:
        folder: of a run.
        added_to: files that get rows; their present ones stay signed.
        replaced: files of which nothing is known until then.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return
    sizes = {name: (folder / name).stat().st_size for name in added_to if name in manifest.files}
    opened = {**dict.fromkeys([*added_to, *replaced], 0), **sizes}
    _write(folder, replace(manifest, open={**opened, **manifest.open, **dict.fromkeys(replaced, 0)}))


def finish_run(folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json`` of a run that is complete and sign the run. A kill in between leaves one that can continue.

    Scores that an earlier part of the run got are out of date and are not signed.
    """
    kept = [name for name in present(folder) if name not in (*DERIVED, RUN)]
    _write(folder, Manifest({name: digest(folder / name) for name in kept}, {RUN: 0}))
    write_json(folder / RUN, record)
    sign_files(folder, [RUN])


def reopen(folder: Path) -> None:
    """Take the manifest away: the run continues, or what it holds is about to be checked again."""
    with suppress(FileNotFoundError):
        (folder / MANIFEST).unlink()


def _write(folder: Path, manifest: Manifest) -> None:
    kept = asdict(manifest)
    write_json(folder / MANIFEST, kept if manifest.open else {"files": kept["files"]})
