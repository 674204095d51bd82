"""Computed parts of the page, kept under ``results/cache/report`` until a file of their runs or our code changes."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from eval.config.presets import CONF
from eval.results.papers.printed import PRINTED
from eval.runs.exports import is_exported_run
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT, workplace
from memsys.vocabulary import Json

FOLDER = workplace("results", "cache", "report")
#: Entries that no report used for so long are deleted.
KEPT_SECONDS = 14 * 24 * 3600
#: Files that figures depend on.
_SOURCES = ("*.py", "*.yaml", "*.csv")
#: Files of a run whose change leaves every figure as it is.
_NO_FIGURES = ("logs",)


class Cache:
    """Parts of the page by name and by what they were computed from.

    Args:
        folder: of the entries; ``None`` computes everything again.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, name: str, inputs: Iterable[Json], make: Callable[[], Json]) -> Json:
        """Return a part of the page, from the cache where its inputs are the same.

        Args:
            name: of the part.
            inputs: everything it depends on but the code, as JSON.
            make: computes it.
        """
        if self._folder is None:
            return make()
        digest = hashlib.sha256(json.dumps([code_stamp(), name, list(inputs)]).encode()).hexdigest()
        path = self._folder / f"{name}-{digest[:24]}.json"
        if (known := _read(path)) is not None:
            path.touch()
            return known[0]
        # Both ways give what JSON makes of it, so that a page is the same with and without the cache.
        text = json.dumps([make()], allow_nan=False)
        write_atomic(path, f"{_checksum(path, text)}\n{text}".encode())
        return json.loads(text)[0]

    def prune(self) -> None:
        """Delete entries that were not used for two weeks."""
        oldest = time.time() - KEPT_SECONDS
        for path in self._folder.glob("*.json") if self._folder else ():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def _read(path: Path) -> list[Any] | None:
    """Return an entry; one that is not as it was written, or is another's, counts as absent and is computed again."""
    try:
        checksum, _, text = path.read_text(encoding="utf-8").partition("\n")
        found: list[Any] | None = json.loads(text) if checksum == _checksum(path, text) else None
    except (OSError, ValueError):
        return None
    return found


def _checksum(path: Path, text: str) -> str:
    return hashlib.sha256(f"{path.name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(folder: Path) -> list[Json]:
    """Return the names, sizes and times of change of a run's files, sorted.

    Hidden ones do not count: a run that is going on writes them for a moment. Files that vanish meanwhile are skipped.
    """
    found: list[Json] = [str(folder.resolve())]
    parent = folder.parent if is_exported_run(folder) else folder  # exported runs share the files of their folder
    for path in sorted(parent.rglob("*")):
        name = path.relative_to(parent)
        if name.parts[0] not in _NO_FIGURES and not path.name.startswith("."):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            if S_ISREG(status.st_mode):
                found.append([str(name), status.st_size, status.st_mtime_ns])
    return found


@cache
def code_stamp() -> str:
    """Return the checksum of the code and settings that figures depend on."""
    digest = hashlib.sha256()
    folders = (*(ROOT / name for name in ("eval", "memsys", "baselines")), CONF, PRINTED)
    for path in sorted(path for folder in folders for kind in _SOURCES for path in folder.rglob(kind)):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
