"""Where files lie: what comes with memsys, what a user keeps, and models.

In a source checkout everything is below its root. An installed package carries a copy of what the checkout has next to
the packages (``setup.py`` puts it there), and a user's own files are looked for in the current folder.
"""

import os
from pathlib import Path

from memsys.errors import AssetError

#: The folder that holds the packages ``memsys``, ``baselines`` and ``eval``: a checkout's root, or ``site-packages``.
ROOT = Path(__file__).resolve().parents[2]
_CARRIED = Path(__file__).resolve().parents[1] / "_shipped"


def is_installed() -> bool:
    """Whether this is an installed package and no source checkout."""
    return _CARRIED.is_dir()


def shipped(*parts: str) -> Path:
    """Path of a file or folder that comes with memsys: below ``conf``, ``datasets`` or ``results/printed``."""
    return (_CARRIED if is_installed() else ROOT).joinpath(*parts)


def workplace(*parts: str) -> Path:
    """Path of what a user keeps, as data, runs and tables: below the checkout, or below the current folder."""
    return (Path.cwd() if is_installed() else ROOT).joinpath(*parts)


def models_dir() -> Path:
    """Folder of the model and corpus files: ``$MEMSYS_MODELS``, else ``models/`` of the checkout or the user's cache.

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
