"""Download data files: resumable, checked against the pinned checksum, moved into place only when whole."""

import json
import shutil
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from eval.loaders.contract import DatasetInfo, PinnedFile
from eval.loaders.locate import DATA_VARIABLE
from memsys.assets.checksums import sha256
from memsys.errors import DataError, DownloadError

if TYPE_CHECKING:
    import httpx

#: Called with bytes so far and bytes in all (0 where the server does not say).
Progress = Callable[[int, int], None]
_CHUNK = 1 << 16


class FetchOutcome(Enum):
    """Result of fetching a file."""

    PRESENT = "already there"
    DOWNLOADED = "downloaded"
    RESUMED = "resumed"
    COPIED = "copied"


def silent(done: int, total: int) -> None:
    """Report nothing."""


def fetch(
    info: DatasetInfo, file: PinnedFile, folder: Path, progress: Progress = silent, timeout: float = 30.0
) -> FetchOutcome:
    """Download one file of a data set into ``folder``.

    What has arrived is kept as ``<name>.part``; a later call asks the server for the rest.

    Raises:
        DownloadError: the server cannot be reached, or ended the transfer; says what to do by hand.
        DataError: refused, wrong checksum, or registration is needed; says what to do by hand.
    """
    import httpx  # here: the tables import this package for the facts of the data sets alone

    target = folder / file.name
    if is_there(file, target):
        return FetchOutcome.PRESENT
    if not file.url:
        raise DataError(
            f"{file.name} of {info.title} cannot be downloaded by a script. {info.how_to_get} {by_hand(file, folder)}"
        )
    part = target.with_name(target.name + ".part")
    try:
        resumed = _download(file.url, part, progress, timeout)
    except httpx.HTTPStatusError as error:
        reason = f"the server answered {error.response.status_code} {error.response.reason_phrase}"
        raise DataError(f"{file.url}: {reason}. {by_hand(file, folder)}") from error
    except httpx.TransportError as error:
        reason = f"{type(error).__name__}: {error}"
        raise DownloadError(
            f"{file.url} cannot be reached ({reason}). Run the same command again to resume. {by_hand(file, folder)}"
        ) from error
    if file.parquet:
        _rows_to_json(file, part)
    _into_place(file, part, target)
    return FetchOutcome.RESUMED if resumed else FetchOutcome.DOWNLOADED


def copy(info: DatasetInfo, file: PinnedFile, source: Path, folder: Path) -> FetchOutcome:
    """Take a file from a folder that has it, with the same checks as a download.

    Raises:
        DataError: the folder does not have it, or its checksum is wrong.
    """
    target = folder / file.name
    if is_there(file, target):
        return FetchOutcome.PRESENT
    candidates = [source / file.name, source / Path(file.name).name]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise DataError(f"{source}: has no {file.name} of {info.title}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    shutil.copyfile(found, part)
    _into_place(file, part, target)
    return FetchOutcome.COPIED


def is_there(file: PinnedFile, target: Path) -> bool:
    """Say whether the file is in place.

    Raises:
        DataError: a file of that name is there but has another checksum. It is never overwritten.
    """
    if not target.is_file():
        return False
    found = sha256(target)
    if file.sha256 and found != file.sha256:
        raise DataError(
            f"{target}: is there with sha256 {found}, but the published file has {file.sha256}. "
            "Move it away to fetch the published one; loaders read it as it is and record its checksum"
        )
    return True


def by_hand(file: PinnedFile, folder: Path) -> str:
    """Say how to do without this script."""
    source = f"Download {file.url} on a machine with access" if file.url else "Get the file"
    if file.parquet:
        source += ", write its rows as a JSON array (indented by two, ensure_ascii=False)"
    check = f" (sha256 {file.sha256})" if file.sha256 else ""
    return (
        f"{source}, save it as {folder / file.name}{check}, or set {DATA_VARIABLE} to the folder that holds {file.name}"
    )


def _download(url: str, part: Path, progress: Progress, timeout: float) -> bool:
    """Fill ``part``; return whether the server went on where an earlier download stopped."""
    import httpx

    have = part.stat().st_size if part.is_file() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=timeout) as response:
        if have and response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return True  # nothing is left to send; the checksum decides
        response.raise_for_status()
        resumed = _continues(response, have)
        done = have if resumed else 0
        total = done + int(response.headers.get("Content-Length", 0))
        part.parent.mkdir(parents=True, exist_ok=True)  # not before: an empty folder looks like a data set
        with part.open("ab" if resumed else "wb") as stream:
            for chunk in response.iter_bytes(_CHUNK):
                stream.write(chunk)
                done += len(chunk)
                progress(done, total)
    return resumed


def _continues(response: "httpx.Response", have: int) -> bool:
    partial = response.status_code == HTTPStatus.PARTIAL_CONTENT
    return bool(have) and partial and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _rows_to_json(file: PinnedFile, part: Path) -> None:
    """Replace a Parquet file by its rows as a JSON array.

    Raises:
        DataError: it is not a Parquet file; it is discarded.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(part).to_pylist()
    except pyarrow.ArrowInvalid as error:
        size = part.stat().st_size
        part.unlink()
        raise DataError(
            f"{file.url}: no Parquet file ({size} bytes); discarded. A proxy may have answered in its place"
        ) from error
    made = part.with_name(part.name + ".json")
    made.write_text(json.dumps(rows, ensure_ascii=False, indent=2), encoding="utf-8")
    made.replace(part)


def _into_place(file: PinnedFile, part: Path, target: Path) -> None:
    found = sha256(part)
    if file.sha256 and found != file.sha256:
        size = part.stat().st_size
        part.unlink()
        raise DataError(
            f"{file.url or part}: sha256 {found} ({size} bytes), expected {file.sha256} ({file.size} bytes); "
            "discarded. The published file may have changed, or a proxy answered in its place"
        )
    part.replace(target)
