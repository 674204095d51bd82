"""Bytes of the authors' files: from a folder or a git mirror (``$MEMSYS_SOURCES``), else from GitHub."""

import os
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memsys.errors import DataError

RAW = "https://raw.githubusercontent.com"
_TIMEOUT_S = 60
_MOST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a repository on GitHub at a commit; ``repository`` is ``owner/name``, ``sha256`` that of its bytes."""

    repository: str
    commit: str
    path: str
    sha256: str

    @property
    def url(self) -> str:
        """Where GitHub serves it."""
        return f"{RAW}/{self.repository}/{self.commit}/{self.path}"

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit[:7]}:{self.path}"


def sources_folder() -> Path | None:
    """``$MEMSYS_SOURCES``: a folder with git repositories named ``owner+name``, or their files.

    A file lies at ``owner+name/path``; where two commits of a file are needed, at ``owner+name@COMMIT/path`` with the
    first seven digits of the commit.
    """
    given = os.environ.get("MEMSYS_SOURCES")
    return Path(given).expanduser() if given else None


def read_source(source: SourceFile, folder: Path | None) -> str:
    """Return the file's text, its checksum compared.

    Args:
        source: what to read.
        folder: see :func:`sources_folder`; ``None`` downloads.

    Raises:
        DataError: it cannot be had, or is not the file of the catalogue.
    """
    content = _download(source) if folder is None else _from_folder(source, folder)
    found = sha256(content).hexdigest()
    if found != source.sha256:
        raise DataError(f"{source} has sha256 {found}, the catalogue says {source.sha256}; get the file of that commit")
    return content.decode("utf-8")


def _from_folder(source: SourceFile, folder: Path) -> bytes:
    home = folder / source.repository.replace("/", "+")
    for file in (home.with_name(f"{home.name}@{source.commit[:7]}") / source.path, home / source.path):
        if file.is_file():
            return file.read_bytes()
    for git in (home / "repo", home / ".git", home, home.with_name(f"{home.name}.git")):
        if (git / "objects").is_dir():
            return _from_git(source, git)
    raise DataError(f"{source}: neither {home / source.path} nor a git repository {home} exists")


def _from_git(source: SourceFile, git: Path) -> bytes:
    command = ["git", f"--git-dir={git}", "cat-file", "blob", f"{source.commit}:{source.path}"]
    shown = subprocess.run(command, capture_output=True, check=False)
    if shown.returncode:
        raise DataError(f"{source}: {git} does not have it: {shown.stderr.decode(errors='replace').strip()}")
    return shown.stdout


def _download(source: SourceFile) -> bytes:
    try:
        with urllib.request.urlopen(source.url, timeout=_TIMEOUT_S) as reply:
            content: bytes = reply.read(_MOST_BYTES)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise DataError(
            f"{source.url} cannot be had ({error}); set MEMSYS_SOURCES to a folder that holds "
            f"{source.repository.replace('/', '+')}/{source.path}, or a clone of that name"
        ) from error
    return content
