"""Bytes of the authors' files: from a folder or a git mirror (``$MEMSYS_SOURCES``), else from GitHub.

The text of a paper, which no repository has, comes from that folder alone.
"""

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memsys.errors import DataError

RAW = "https://raw.githubusercontent.com"
_TIMEOUT_S = 60
_MOST_BYTES = 20_000_000
_HOW_TO_ADAPT = (
    "The text that another program takes from the PDF has other lines: state its sha256 and the lines and checksums of "
    "its prompts in the prompt_pack.yaml of the system"
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a repository on GitHub at a commit; ``repository`` is ``owner/name``, ``sha256`` that of its bytes."""

    repository: str
    commit: str
    path: str
    sha256: str

    @property
    def url(self) -> str:
        """Address of the file on GitHub."""
        return f"{RAW}/{self.repository}/{self.commit}/{self.path}"

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit[:7]}:{self.path}"


@dataclass(frozen=True, slots=True)
class PaperText:
    """The text of a paper as a program took it from the printed pages, a file that the user provides.

    Attributes:
        title: of the paper.
        path: of the file under the folder of sources.
        sha256: of its bytes; another program's text has other lines and another checksum.
        arxiv: the paper's number there, where its text states it.
    """

    title: str
    path: str
    sha256: str
    arxiv: str | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.title})"


#: A file that prompts are cut from.
Source = SourceFile | PaperText


class MissingSourceError(DataError):
    """A file is not there, or cannot be fetched; unlike one that is there and is another."""


class MissingPaperError(MissingSourceError):
    """The text of a paper is not there, and nothing can fetch it."""


def make_source(given: Mapping[str, str]) -> Source:
    """Make a source from its entry in a pack: ``kind: paper``, or a file of a repository, which has no ``kind``.

    Raises:
        ValueError: the kind is unknown.
        TypeError: a key is missing or unknown.
    """
    fields = dict(given)
    kind = fields.pop("kind", "repository")
    if kind == "paper":
        return PaperText(**fields)
    if kind != "repository":
        raise ValueError(f"kind={kind!r} is unknown; a source is a paper, or has no kind")
    return SourceFile(**fields)


def sources_folder() -> Path | None:
    """Return ``$MEMSYS_SOURCES``: a folder with git repositories named ``owner+name``, or their files.

    A file lies at ``owner+name/path``; where two commits of a file are needed, at ``owner+name@COMMIT/path`` with the
    first seven digits of the commit. Texts of papers lie where their catalogue says, such as ``papers/name.txt``.
    """
    given = os.environ.get("MEMSYS_SOURCES")
    return Path(given).expanduser() if given else None


def read_source(source: Source, folder: Path | None) -> str:
    """Return the file's text, its checksum compared.

    Args:
        source: what to read.
        folder: see :func:`sources_folder`; ``None`` downloads.

    Raises:
        MissingSourceError: it cannot be had.
        DataError: it is not the file of the catalogue.
    """
    content = _content(source, folder)
    found = sha256(content).hexdigest()
    if found != source.sha256:
        advice = _HOW_TO_ADAPT if isinstance(source, PaperText) else "get the file of that commit"
        raise DataError(f"{source} has sha256 {found}, the catalogue says {source.sha256}; {advice}")
    return content.decode("utf-8")


def _content(source: Source, folder: Path | None) -> bytes:
    if isinstance(source, PaperText):
        return _paper(source, folder)
    return _download(source) if folder is None else _from_folder(source, folder)


def _paper(source: PaperText, folder: Path | None) -> bytes:
    file = None if folder is None else folder / source.path
    if file is not None and file.is_file():
        return file.read_bytes()
    where = f"{file} is missing" if file else f"MEMSYS_SOURCES is not set to a folder that holds {source.path}"
    number = f", arXiv {source.arxiv}" if source.arxiv else ""
    raise MissingPaperError(
        f"{where}: the text of the paper {source.title!r}{number}, which nothing can fetch; take it from the paper's "
        f"PDF as Markdown, UTF-8, and save it there (sha256 {source.sha256}). {_HOW_TO_ADAPT}"
    )


def _from_folder(source: SourceFile, folder: Path) -> bytes:
    home = folder / source.repository.replace("/", "+")
    for file in (home.with_name(f"{home.name}@{source.commit[:7]}") / source.path, home / source.path):
        if file.is_file():
            return file.read_bytes()
    for git in (home / "repo", home / ".git", home, home.with_name(f"{home.name}.git")):
        if (git / "objects").is_dir():
            return _from_git(source, git)
    raise MissingSourceError(f"{source}: neither {home / source.path} nor a git repository {home} exists")


def _from_git(source: SourceFile, git: Path) -> bytes:
    command = ["git", f"--git-dir={git}", "cat-file", "blob", f"{source.commit}:{source.path}"]
    shown = subprocess.run(command, capture_output=True, check=False)
    if shown.returncode:
        raise MissingSourceError(f"{source}: {git} does not have it: {shown.stderr.decode(errors='replace').strip()}")
    return shown.stdout


def _download(source: SourceFile) -> bytes:
    try:
        with urllib.request.urlopen(source.url, timeout=_TIMEOUT_S) as reply:
            content: bytes = reply.read(_MOST_BYTES)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise MissingSourceError(
            f"{source.url} cannot be had ({error}); set MEMSYS_SOURCES to a folder that holds "
            f"{source.repository.replace('/', '+')}/{source.path}, or a clone of that name"
        ) from error
    return content
