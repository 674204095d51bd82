"""Python environments of packages: ``.venv-packages/NAME``, made by ``scripts/make_package_env.py NAME``."""

import hashlib
from pathlib import Path

from memsys.assets.hints import in_checkout
from memsys.assets.paths import workplace
from memsys.errors import AssetError

#: Written into an environment once it is whole: the checksum of the requirements that it was made from.
STAMP = ".requirements-sha256"


def environment_folder(package: str) -> Path:
    """Return the folder of a package's environment, which need not exist."""
    return workplace(".venv-packages", package)


def requirements_sha256(requirements: Path) -> str:
    """Return the checksum that marks an environment made from this file."""
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def is_installed(package: str, requirements: Path) -> bool:
    """Return whether a package's environment was made from these requirements."""
    stamp = environment_folder(package) / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == requirements_sha256(requirements)


def interpreter_of(package: str, requirements: Path) -> Path:
    """Return the Python interpreter of a package's environment.

    Raises:
        AssetError: it is not there, or was made from other requirements; names the command that makes it.
    """
    folder = environment_folder(package)
    if not is_installed(package, requirements):
        problem = "was made from other requirements" if (folder / STAMP).is_file() else "is not there"
        raise AssetError(
            f"package {package}: its environment {folder} {problem}; "
            + in_checkout(
                f"make it with `python scripts/make_package_env.py {package}`",
                "start the run in a checkout of memsys's source and make it there with scripts/make_package_env.py "
                f"{package}",
            )
        )
    return folder / "bin" / "python"
