"""Fetch the published data sets: ``memsys data NAME... [--to FOLDER] [--from FOLDER]``.

Exit code 0: everything asked for is in place; 3: downloads failed, and the same command continues; 2: something else is
missing, and the message says what to do.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import EXIT_DONE, EXIT_ERROR, EXIT_INCOMPLETE, explains_errors, program, start
from eval.commands.places import check_folder
from eval.commands.suggestions import did_you_mean
from eval.commands.terminal import say
from eval.loaders.contract import DatasetInfo, PinnedFile
from eval.loaders.fetch import FetchOutcome, copy, fetch
from eval.loaders.locate import DATA_VARIABLE, data_folder
from eval.loaders.registry import DATASETS
from memsys.assets.checksums import sha256
from memsys.errors import DataError, UnreachableError


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what the command line names; returns the exit status."""
    options = _options(arguments)
    folder = options.to or data_folder()
    check_folder(folder, "--to" if options.to else DATA_VARIABLE)
    if options.source and not options.source.is_dir():
        raise DataError(f"--from {options.source} is not a folder; name the one that holds the files")
    infos = list(DATASETS.values()) if "all" in options.names else [DATASETS[name] for name in options.names]
    if own := [info.key for info in infos if not info.files and "all" not in options.names]:
        raise DataError(
            f"{', '.join(own)}: there is nothing to fetch of data of your own; see {DATASETS[own[0]].homepage}"
        )
    missing: dict[str, int] = {}
    for info in infos:
        say(f"{info.title}: {info.licence}. {info.homepage}\n  Please cite: {info.citation}")
        missing |= _get_all(info, folder, options.source)
    total = sum(len(info.files) for info in infos)
    say(f"{total - len(missing)} of {total} files are in place in {folder}")
    if missing:
        _warn(f"missing: {', '.join(missing)}; finished files are kept; run the same command again to continue")
    return EXIT_ERROR if EXIT_ERROR in missing.values() else max(missing.values(), default=EXIT_DONE)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; a data set without published files is taken, to be told what it is."""
    choices = [*(key for key, info in DATASETS.items() if info.files), "all"]
    parser = argparse.ArgumentParser(prog=program("data"), description="Fetch the published data sets.")
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(choices))
    parser.add_argument("--to", type=Path, help="folder (default: MEMSYS_DATA, else data/ of the checkout or here)")
    parser.add_argument("--from", type=Path, dest="source", help="copy from this folder instead of downloading")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in (*DATASETS, "all"):
            known = ", ".join(choices)
            parser.error(f"argument NAME: invalid choice: {name!r}{did_you_mean(name, choices)} (choose from {known})")
    return options


def _get_all(info: DatasetInfo, folder: Path, source: Path | None) -> dict[str, int]:
    """Get the files of a data set; returns the names of those that are not in place, each with its exit status."""
    missing: dict[str, int] = {}
    for file in info.files:
        by_hand_alone = not file.url and source is None
        if by_hand_alone and missing and not (folder / file.name).exists():
            _warn(f"  {file.name}: likewise (sha256 {file.sha256})")
            missing[file.name] = EXIT_ERROR
        elif status := _get(info, file, folder, source):
            missing[file.name] = status
    return missing


def _get(info: DatasetInfo, file: PinnedFile, folder: Path, source: Path | None) -> int:
    """Get one file; say what happened, and return the exit status that it has by itself."""
    try:
        outcome = copy(info, file, source, folder) if source else fetch(info, file, folder, _show_progress)
    except (DataError, OSError) as error:
        _warn(f"  {file.name}: {error}")
        return EXIT_INCOMPLETE if isinstance(error, UnreachableError) else EXIT_ERROR
    if outcome in (FetchOutcome.DOWNLOADED, FetchOutcome.RESUMED):
        _warn("")
    digest = sha256(folder / file.name)
    note = "" if file.sha256 else " (no published checksum to compare with)"
    say(f"  {folder / file.name}: {outcome.value}, sha256 {digest}{note}")
    return EXIT_DONE


def _show_progress(done: int, total: int) -> None:
    """Rewrite one line of the terminal."""
    share = f"{100 * done // total:3d} %" if total else ""
    sys.stderr.write(f"\r    {done / 1e6:8.1f} MB {share}")
    sys.stderr.flush()


def _warn(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    start(main)
