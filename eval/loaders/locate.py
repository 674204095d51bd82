"""Locations of data files: an explicit path, a folder, ``MEMSYS_DATA``, or ``data/`` of the checkout."""

import logging
import os
from collections.abc import Collection
from pathlib import Path

from eval.loaders.contract import DatasetInfo
from memsys.assets.paths import shipped, workplace
from memsys.errors import DataError

logger = logging.getLogger(__name__)

#: Environment variable that names the folder of the real data sets.
DATA_VARIABLE = "MEMSYS_DATA"


def data_folder(data_dir: str | None = None) -> Path:
    """Return the folder of the data sets: as named, else ``MEMSYS_DATA``, else ``data/`` of the checkout or here."""
    chosen = data_dir or os.environ.get(DATA_VARIABLE)
    return Path(chosen).expanduser() if chosen else workplace("data")


def _folder(data_dir: str | None) -> Path:
    """Return the folder of the data sets.

    Raises:
        DataError: it is a file.
    """
    folder = data_folder(data_dir)
    if folder.is_file():
        named = "dataset.data_dir" if data_dir else DATA_VARIABLE
        raise DataError(f"{named}={folder} is a file; name the folder that holds it, or dataset.path={folder}")
    return folder


def sample_path(folder: str, name: str = "sample.json") -> Path:
    """Return the path of a sample that comes with the project, ``datasets/<folder>/<name>``."""
    path = shipped("datasets", folder, name)
    if not path.exists():
        raise DataError(f"{path} is missing: it comes with memsys; restore the checkout or install memsys again")
    return path


def find_source(info: DatasetInfo, name: str, path: str | None, data_dir: str | None) -> Path:
    """Find a file or folder of a data set.

    Args:
        info: says how the set is had, for the message.
        name: file or folder below the data folder.
        path: explicit path, which wins.
        data_dir: explicit data folder.

    Raises:
        DataError: nothing is there; the message says how to fetch it and where to put it.
    """
    if path is None and data_folder(data_dir).is_file():
        raise DataError(
            f"{data_folder(data_dir)} is a file; {DATA_VARIABLE} and dataset.data_dir name the folder that holds {name}"
        )
    source = Path(path).expanduser() if path else _folder(data_dir) / name
    try:
        found = source.exists()
    except OSError as error:
        raise DataError(f"{source}: {error.strerror}; check dataset.path, dataset.data_dir") from error
    if found:
        return source
    how = info.how_to_get or _how_to_fetch(info, name)
    raise DataError(
        f"{source}: no such file or folder. {info.title} is not part of this project ({info.licence}). {how} "
        f"The folder that holds {name} (from {info.homepage}) is named by the variable {DATA_VARIABLE} or by "
        "dataset.data_dir. Without it, the small sample that comes with the project runs: dataset.sample=true"
    )


def _how_to_fetch(info: DatasetInfo, name: str) -> str:
    fetched = [file.name for file in info.files]
    if any(one == name or one.startswith(f"{name}/") for one in fetched):
        return f"Fetch it with `memsys data {info.key}`."
    return f"`memsys data {info.key}` fetches {', '.join(fetched)} alone; its homepage has this one."


def warn_of_missing(source: Path, info: DatasetInfo, published: Collection[str], read: Collection[str]) -> None:
    """Say which of the published files a folder lacks that has some of them: it would pass for the whole set.

    Args:
        source: the folder.
        info: of the data set.
        published: names of its files.
        read: names of the files that were read.
    """
    missing = sorted(set(published) - set(read))
    if missing and set(published) & set(read):
        logger.warning(
            "%s lacks %s of %s: what is asked is not what was published", source, ", ".join(missing), info.title
        )
