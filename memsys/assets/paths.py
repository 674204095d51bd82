"""Locations of files: those shipped with memsys, the user's, and models.

In a source checkout everything is below its root. An installed package carries a copy of what the checkout has next to
the packages (``setup.py`` puts it there), and a user's own files are looked for in the current folder.
"""

import os
from functools import cache
from pathlib import Path

from memsys.errors import AssetError

#: The folder that holds the packages ``memsys``, ``baselines`` and ``eval``: a checkout's root, or ``site-packages``.
ROOT = Path(__file__).resolve().parents[2]
_CARRIED = Path(__file__).resolve().parents[1] / "_shipped"


def is_installed() -> bool:
    """Return whether this is an installed package and no source checkout."""
    return _CARRIED.is_dir()


def is_library(file: Path) -> bool:
    """Return whether a file is of Python's library or of an installed package."""
    return any(file.resolve().is_relative_to(folder) for folder in _library_folders())


@cache
def _library_folders() -> tuple[Path, ...]:
    import site
    import sysconfig

    named = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(one).resolve() for one in (*named, site.getusersitepackages()))


def shipped(*parts: str) -> Path:
    """Return the path of a file or folder shipped with memsys: below ``conf``, ``datasets`` or ``results/printed``."""
    return (_CARRIED if is_installed() else ROOT).joinpath(*parts)


def workplace(*parts: str) -> Path:
    """Return the path of a user's files (data, runs, tables): below the checkout, or below the current folder."""
    return (Path.cwd() if is_installed() else ROOT).joinpath(*parts)


def models_dir() -> Path:
    """Return the folder of models and corpora: ``$MEMSYS_MODELS``, else ``models/`` of the checkout or user's cache.

    The cache is ``$XDG_CACHE_HOME/memsys/models``, where the variable is not set ``~/.cache/memsys/models``.

    Raises:
        AssetError: the variable names a file.
    """
    override = os.environ.get("MEMSYS_MODELS")
    if override:
        folder = Path(override).expanduser().resolve()
        if folder.is_file():
            raise AssetError(f"MEMSYS_MODELS={override} is a file; name the folder of the models")
        return folder
    if not is_installed():
        return ROOT / "models"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).expanduser() / "memsys" / "models"
