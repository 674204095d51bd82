"""Files that others published on GitHub: their addresses and checksums, and the folder that holds them here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.contract import PinnedFile
from memsys.assets.paths import workplace
from memsys.errors import DataError

#: Environment variable that names the folder of the recorded files.
VARIABLE = "MEMSYS_RECORDED"


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """Files of a repository at one commit.

    Attributes:
        name: by which ``memsys recorded`` knows them.
        repository: owner/name on GitHub.
        commit: of the files.
        licence: as the repository says; ``none found`` where it says nothing.
        files: path in the repository -> sha256.
    """

    name: str
    repository: str
    commit: str
    licence: str
    files: Mapping[str, str]

    @property
    def pinned(self) -> tuple[PinnedFile, ...]:
        """Return the files with checksum and address; their names are paths in the folder of the recorded files."""
        folder = self.repository.replace("/", "+")
        base = f"https://raw.githubusercontent.com/{self.repository}/{self.commit}"
        return tuple(
            PinnedFile(name=f"{folder}/{path}", sha256=digest, size=0, url=f"{base}/{path}")
            for path, digest in self.files.items()
        )


def recorded_folder() -> Path:
    """Return the folder of the recorded files: ``MEMSYS_RECORDED``, else ``data/recorded`` of the checkout.

    Raises:
        DataError: the variable names a file.
    """
    chosen = os.environ.get(VARIABLE)
    folder = Path(chosen).expanduser() if chosen else workplace("data", "recorded")
    if folder.is_file():
        raise DataError(f"{VARIABLE}={folder} is a file; name the folder of the recorded files")
    return folder
