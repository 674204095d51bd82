"""Backbone and reader of a command line that names neither: ``conf/first_run.yaml``.

``conf/config.yaml`` has the smallest model, which shows that everything works and answers nothing; who names no model
gets one whose answers say something, with replies bounded for its size.
"""

from collections.abc import Sequence

from eval.config.compose import choice_settings
from eval.config.presets import CONF, GLOBAL_GROUPS, read_settings
from memsys.assets.catalog import CATALOG, file_paths
from memsys.assets.contract import Asset

SETTINGS = CONF / "first_run.yaml"
#: What who does not want to fetch a model may write.
NO_MODEL_HINT = (
    "choose another backbone: backbone=endpoint with your own server, or backbone=smollm2_135m, a 98 MB model that is "
    "too small to answer well"
)
#: Settings of one machine or site, which may name a backbone of their own.
_SITE = CONF / "local" / "default.yaml"


def chosen_model(overrides: Sequence[str]) -> tuple[str, ...]:
    """Return backbone and reader, as overrides, for settings that name no backbone, experiment or sweep; else none."""
    if not lacks_model(overrides):
        return ()
    settings = read_settings(SETTINGS)
    backbone = f"backbone={_first_here(settings['backbones'])}"
    named = any(_part(text) == "reader" for text in overrides)
    return (backbone,) if named else (backbone, f"reader={settings['reader']}")


def lacks_model(overrides: Sequence[str]) -> bool:
    """Return whether settings name no backbone, experiment or sweep, and no run without a backbone."""
    if any(_part(text) in ("backbone", *GLOBAL_GROUPS) or text == "mode=retrieval_only" for text in overrides):
        return False
    return not (_SITE.is_file() and "backbone" in _SITE.read_text(encoding="utf-8"))


def model_file(backbone: str) -> Asset | None:
    """Return the file that an embedded backbone loads; ``None`` for one whose file is not of the catalogue.

    Raises:
        ConfigError: there is no such backbone.
    """
    engine = choice_settings("backbone", backbone).get("engine") or {}
    return CATALOG.get(str(engine.get("model_file")))


def missing_models(backbone: str) -> list[Asset]:
    """Return what a run on a backbone needs and is not here: its file, the embedding model, the corpora of metrics.

    Raises:
        ConfigError: there is no such backbone.
    """
    others = [asset for asset in CATALOG.values() if asset.by_default and asset.kind != "language_model"]
    return [asset for asset in (model_file(backbone), *others) if asset is not None and not is_here(asset)]


def is_here(asset: Asset) -> bool:
    """Return whether all files of an asset are in place; what is in them is checked when they are loaded."""
    return all(path.is_file() for path in file_paths(asset))


def _first_here(backbones: Sequence[str]) -> str:
    for name in backbones:
        asset = model_file(name)
        if asset is not None and is_here(asset):
            return name
    return backbones[0]


def _part(override: str) -> str:
    """Return the part that an override is about: ``backbone`` of ``backbone.engine.port=1``."""
    key = override.lstrip("+~").partition("=")[0]
    return key.partition(".")[0].partition("@")[0].partition("/")[0]
