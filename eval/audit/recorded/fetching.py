"""Fetching published files from GitHub at their commits; each is verified and never overwritten."""

from pathlib import Path

from eval.commands.terminal import complain, say
from eval.loaders.contract import DatasetInfo
from eval.loaders.fetch import FetchOutcome, fetch
from eval.loaders.published_files import PublishedFiles
from memsys.errors import DataError


def fetch_entry(entry: PublishedFiles, folder: Path) -> bool:
    """Put the files of an entry into a folder and say what was done.

    Returns:
        Whether all of them are in place with their checksums.
    """
    info = DatasetInfo(
        key=entry.name,
        title=f"{entry.name} ({entry.repository})",
        homepage=f"https://github.com/{entry.repository}",
        licence=entry.licence,
        citation="",
        files=entry.pinned,
        category_names={},
    )
    whole = True
    for file in entry.pinned:
        try:
            outcome = fetch(info, file, folder)
        except (DataError, OSError) as error:  # a full disk, a folder that cannot be written
            complain(f"{file.name}: {error}" if isinstance(error, OSError) else str(error))
            whole = False
            continue
        if outcome is not FetchOutcome.PRESENT:
            say(f"{file.name}: {outcome.value}")
    return whole
