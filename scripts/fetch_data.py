"""Fetch the published data sets: python scripts/fetch_data.py locomo [more | all] [--to DIR] [--from DIR].

Exit code 0: everything asked for is in place; 2: something is not, and the message says what to do.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval.loaders.contract import DatasetInfo, PinnedFile
from eval.loaders.fetch import Outcome, copy, fetch, sha256_of
from eval.loaders.locate import data_folder
from eval.loaders.registry import DATASETS
from memsys.errors import DataError


def show_progress(done: int, total: int) -> None:
    """Rewrite one line of the terminal."""
    share = f"{100 * done // total:3d} %" if total else ""
    print(f"\r    {done / 1e6:8.1f} MB {share}", end="", file=sys.stderr, flush=True)


def get(info: DatasetInfo, file: PinnedFile, folder: Path, source: Path | None) -> bool:
    """Get one file; say what happened."""
    try:
        outcome = copy(info, file, source, folder) if source else fetch(info, file, folder, show_progress)
    except (DataError, OSError) as error:
        print(f"  {file.name}: {error}", file=sys.stderr)
        return False
    if outcome in (Outcome.DOWNLOADED, Outcome.RESUMED):
        print(file=sys.stderr)
    digest = sha256_of(folder / file.name)
    note = "" if file.sha256 else " (no published checksum to compare with)"
    print(f"  {folder / file.name}: {outcome.value}, sha256 {digest}{note}")
    return True


def get_all(info: DatasetInfo, folder: Path, source: Path | None) -> list[str]:
    """Get the files of a data set; returns the names of those that are not in place."""
    missing: list[str] = []
    for file in info.files:
        by_hand_alone = not file.url and source is None
        if by_hand_alone and missing and not (folder / file.name).exists():
            print(f"  {file.name}: likewise (sha256 {file.sha256})", file=sys.stderr)
            missing.append(file.name)
        elif not get(info, file, folder, source):
            missing.append(file.name)
    return missing


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="+", choices=[*DATASETS, "all"], metavar="NAME", help=", ".join([*DATASETS, "all"])
    )
    parser.add_argument("--to", type=Path, help="folder (default: MEMSYS_DATA, else data/ of the checkout)")
    parser.add_argument("--from", type=Path, dest="source", help="copy from this folder instead of downloading")
    arguments = parser.parse_args()
    folder = arguments.to or data_folder()
    infos = list(DATASETS.values()) if "all" in arguments.names else [DATASETS[name] for name in arguments.names]
    missing: list[str] = []
    for info in infos:
        print(f"{info.title}: {info.licence}. {info.homepage}\n  Please cite: {info.citation}", flush=True)
        missing += get_all(info, folder, arguments.source)
    total = sum(len(info.files) for info in infos)
    print(f"{total - len(missing)} of {total} files are in place in {folder}")
    if missing:
        print(f"missing: {', '.join(missing)}; what has arrived is kept, the same command goes on", file=sys.stderr)
    return 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
