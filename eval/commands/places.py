"""Output locations of commands: one rule for all of them.

By default, output is under ``results/`` of the checkout, from whatever folder a command is started (of the current
folder where memsys is installed as a package); paths given by the user are relative to the current folder. Of the
folders of such a place the last one is made, further ones must be there: a misspelt path is an error and no new tree.
"""

import os
from contextlib import suppress
from pathlib import Path

from memsys.assets.paths import ROOT, is_installed, workplace
from memsys.errors import RunDirectoryError

#: Where results lie unless a place is named.
RESULTS = workplace("results")
#: Folders below that git tracks; what else a command writes by default is ignored by git.
TRACKED = ("stress", "summaries", "tables")
#: Environment variable that ``conf/*.yaml`` resolve their default folders against.
HOME_VARIABLE = "MEMSYS_HOME"


def use_checkout() -> None:
    """Let the default folders of the configuration lie in the checkout, from whatever folder a command is started."""
    with suppress(FileNotFoundError):  # for check_current_folder
        if not is_installed() and Path.cwd() != ROOT:
            os.environ.setdefault(HOME_VARIABLE, str(ROOT))


def check_current_folder() -> None:
    """Refuse to start in a folder that has been removed: no path could be told from it.

    Raises:
        RunDirectoryError: it has.
    """
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise RunDirectoryError("the current folder has been removed; change to an existing one") from error


def check_file(path: Path) -> Path:
    """Check where a file is to be written, before any work.

    Raises:
        RunDirectoryError: it is a folder, what should be its folder is a file, or the folder above that is missing.
    """
    if path.is_dir():
        raise RunDirectoryError(f"--out {path} is a folder; name a file in it")
    _check_parent(path, path.parent)
    return path


def check_folder(path: Path, option: str = "--out") -> Path:
    """Check where a folder of files is to be written, before any work.

    Args:
        path: as the user named it.
        option: by which.

    Raises:
        RunDirectoryError: it is a file, or the folder that it would lie in is missing.
    """
    if path.exists() and not path.is_dir():
        raise RunDirectoryError(f"{option} {path} is a file; name a folder")
    _check_parent(path, path, option)
    return path


def _check_parent(named: Path, folder: Path, option: str = "--out") -> None:
    if folder.exists() and not folder.is_dir():
        raise RunDirectoryError(f"cannot write {named}: {folder} is a file; name another {option}")
    above = folder.absolute().parent
    if not folder.is_dir() and not above.is_dir() and not folder.absolute().is_relative_to(RESULTS):
        raise RunDirectoryError(f"{option} {named}: there is no folder {above}; make it, or name another place")


def tracked_remark(path: Path) -> str:
    """Return the remark on a path that git tracks; empty for others."""
    place = path.absolute()
    if not is_installed() and any(place.is_relative_to(RESULTS / name) for name in TRACKED):
        name = place.relative_to(RESULTS.parent)
        return f"{name} is tracked by git: commit what you mean to keep, or name another --out"
    return ""
