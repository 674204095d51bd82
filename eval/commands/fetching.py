"""Fetching models that a run needs, after a question on a terminal."""

import logging
import sys
from collections.abc import Sequence

from eval.commands.asking import can_ask, confirmed
from memsys.assets.contract import Asset
from memsys.assets.fetch import fetch
from memsys.assets.paths import models_dir
from memsys.errors import AssetError


def fetch_missing(missing: Sequence[Asset], *, agreed: bool, otherwise: str = "") -> None:
    """Fetch what is missing: at once where that is agreed, else after a question on a terminal.

    Args:
        missing: what is not here; may be empty.
        agreed: fetch without a question.
        otherwise: what else the user can do, for the message of what is not fetched.

    Raises:
        AssetError: it was not fetched: there was no terminal to ask, the answer was no, or a source failed.
    """
    if not missing:
        return
    needs = f"this needs {', '.join(map(_sized, missing))}, which {models_dir()} does not have yet"
    if not agreed:
        _ask(needs, sum(asset.download_bytes for asset in missing), otherwise)
    sys.stderr.write(f"{needs}; fetching\n" if agreed else "")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    for asset in missing:
        fetch(asset)


def _ask(needs: str, size: int, otherwise: str) -> None:
    """Ask on a terminal whether to fetch.

    Raises:
        AssetError: there is no terminal, or the answer is no.
    """
    ways = f"{needs}: add --yes to fetch it, as `memsys models` does{', or ' + otherwise if otherwise else ''}"
    if not can_ask() or not confirmed(f"{needs}.\nFetch {_megabytes(size)}?", default=True):
        raise AssetError(ways)


def _sized(asset: Asset) -> str:
    return f"{asset.name} ({_megabytes(asset.download_bytes)})"


def _megabytes(size: int) -> str:
    return f"{size / 10**6:.0f} MB"
