"""Choices of ``conf/`` that are no file of that name: variants, names of presets, old names, ``EXPERIMENT_BACKBONE``.

Hydra finds this package by itself, here as after ``pip install``. See :mod:`eval.configs.choices`.
"""

import sys
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

_PROVIDER = "memsys-choices"
_SCHEME = "memsys"


class ChoiceSearchPath(SearchPathPlugin):
    """Looks for choices here when a search path's folder has no file of that name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add a source behind each folder that has an ``aliases.yaml``."""
        for path in [entry.path for entry in search_path.get_path()]:
            folder = (path or "").removeprefix("file://")
            if "://" not in folder and (Path(folder) / "aliases.yaml").is_file():
                search_path.append(_PROVIDER, f"{_SCHEME}://{folder}")


class ChoiceSource(ConfigSource):
    """Configurations made from ``variants.yaml``, names and old names."""

    @staticmethod
    def scheme() -> str:
        """Return what paths of this source begin with."""
        return _SCHEME

    def available(self) -> bool:
        """Whether the folder is there."""
        return Path(self.path).is_dir()

    def is_group(self, config_path: str) -> bool:
        """Whether choices of this group are made here."""
        return config_path in ("memory", "experiment")

    def is_config(self, config_path: str) -> bool:
        """Whether a choice is made here."""
        return self._made(config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Names that may be chosen besides those of files, for Hydra's completion and its messages."""
        if config_path != "memory" or results_filter == ObjectType.GROUP:
            return []
        return sorted(self._memories)

    def load_config(self, config_path: str) -> ConfigResult:
        """Make the configuration of a choice."""
        made = self._made(config_path)
        if made is None:
            raise ConfigLoadError(f"Config not found : {config_path}")
        settings, package, note = made
        if note:
            _say_once(note)
        return ConfigResult(
            provider=self.provider,
            path=self.full_path(),
            config=OmegaConf.create(settings),
            header={"package": package},
        )

    @cached_property
    def _memories(self) -> dict[str, Any]:
        from eval.configs.choices import presets

        return dict(presets(Path(self.path) / "memory"))

    @cached_property
    def _aliases(self) -> dict[str, Any]:
        from eval.configs.choices import aliases

        return dict(aliases(Path(self.path)))

    def _made(self, config_path: str) -> tuple[dict[str, Any], str | None, str] | None:
        """Settings with their defaults list, package, and what to say; ``None`` if there is no such choice."""
        group, _, name = config_path.removesuffix(".yaml").partition("/")
        if group not in ("memory", "experiment") or not name:
            return None
        current = self._aliases.get(group, {}).get(name)
        made = self._memory(current or name) if group == "memory" else self._experiment(current or name)
        note = f"{group}={name} is now written {group}={current}" if current else ""
        return (*made, note) if made else None

    def _memory(self, name: str) -> tuple[dict[str, Any], None] | None:
        by_choice = {preset.choice: preset for preset in self._memories.values()}
        preset = by_choice.get(name) or self._memories.get(name)
        if preset is None:
            return None
        if preset.of is None or preset.choice != name:
            return {"defaults": [f"/memory/{preset.choice}@_here_"]}, None
        return {"defaults": [f"/memory/{preset.of}@_here_", "_self_"], **preset.changes}, None

    def _experiment(self, name: str) -> tuple[dict[str, Any], str] | None:
        from eval.configs.choices import experiment_on_backbone

        found = experiment_on_backbone(name, Path(self.path))
        if found is None:
            return None
        experiment, backbone = found
        return {"defaults": [experiment, {"override /backbone": backbone}]}, "_global_"


@cache
def _say_once(note: str) -> None:
    sys.stderr.write(f"note: {note}\n")
