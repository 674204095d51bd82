"""Choices of ``conf/`` that are no file of that name: variants, names of presets, old names, ``EXPERIMENT_BACKBONE``.

Its files are read here as well, each once for all configurations that a process composes. Hydra finds this package by
itself, here as after ``pip install``. See :mod:`eval.config.choices`.
"""

import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TextIO

import yaml
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from eval.config.choices import GLOBAL_GROUPS, aliases, experiment_on_backbone, find, presets
from eval.config.presets import VARIANTS

_PROVIDER = "memsys-choices"
_SCHEME, _FILES = "memsys", "memsys-file"
#: Name of a file that holds several choices, without its ending, as Hydra names files.
_VARIANTS = Path(VARIANTS).stem


class ChoiceSearchPath(SearchPathPlugin):
    """Looks for choices here when a search path's folder has no file of that name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Read the files of each folder that has an ``aliases.yaml`` here, and add a source of its other choices."""
        for entry in list(search_path.get_path()):
            folder = (entry.path or "").removeprefix("file://")
            if "://" not in folder and (Path(folder) / "aliases.yaml").is_file():
                entry.path = f"{_FILES}://{folder}"
                search_path.append(_PROVIDER, f"{_SCHEME}://{folder}")


class ParsedFileSource(FileConfigSource):
    """Files of a folder, parsed once while they do not change, by libyaml where PyYAML has it.

    Hydra parses a file for each configuration that it composes, in Python, which is most of what composing takes.
    """

    @staticmethod
    def scheme() -> str:
        """Return what paths of this source begin with."""
        return _FILES

    def is_config(self, config_path: str) -> bool:
        """Return whether a file is a choice; a file of variants is not."""
        return Path(config_path).stem != _VARIANTS and bool(super().is_config(config_path))

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the names of the files that are choices, and of folders."""
        return [name for name in super().list(config_path, results_filter) if name != _VARIANTS]

    def load_config(self, config_path: str) -> ConfigResult:
        """Make the configuration of a file."""
        path = Path(self.path, self._normalize_file_name(config_path)).resolve()
        if not path.is_file():
            raise ConfigLoadError(f"Config not found : {path}")
        state = path.stat()
        header, settings = _parsed(path, state.st_mtime_ns, state.st_size)
        return ConfigResult(
            provider=self.provider, path=self.full_path(), config=OmegaConf.create(settings), header=dict(header)
        )


class ChoiceSource(ConfigSource):
    """Configurations made from ``variants.yaml``, names and old names."""

    @staticmethod
    def scheme() -> str:
        """Return what paths of this source begin with."""
        return _SCHEME

    def available(self) -> bool:
        """Return whether the folder exists."""
        return Path(self.path).is_dir()

    def is_group(self, config_path: str) -> bool:
        """Return whether choices of this group are generated here."""
        return config_path in GLOBAL_GROUPS or self._has_variants(config_path)

    def is_config(self, config_path: str) -> bool:
        """Return whether a choice is generated here."""
        return self._made(config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the names that may be chosen besides those of files, for Hydra's completion and its messages."""
        if results_filter == ObjectType.GROUP or not self._has_variants(config_path):
            return []
        return sorted(presets(Path(self.path) / config_path))

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

    def _has_variants(self, group: str) -> bool:
        """Return whether choices of a group are in a ``variants.yaml``: memories in one for each method."""
        is_part = bool(group) and "/" not in group
        return group == "memory" or (is_part and (Path(self.path) / group / VARIANTS).is_file())

    @property  # keeps nothing: Hydra copies its sources, deeply, for each configuration
    def _aliases(self) -> dict[str, Any]:
        return dict(aliases(Path(self.path)))

    def _made(self, config_path: str) -> tuple[dict[str, Any], str | None, str] | None:
        """Return settings with their defaults list, package and message; ``None`` if there is no such choice."""
        group, _, name = config_path.removesuffix(".yaml").partition("/")
        if not name or not (group == "experiment" or self._has_variants(group)):
            return None
        current = self._aliases.get(group, {}).get(name)
        made = self._preset(group, current or name)
        if made is None and group == "experiment":
            made = self._experiment(current or name)
        note = f"{group}={name} is now written {group}={current}" if current else ""
        return (*made, note) if made else None

    def _preset(self, group: str, name: str) -> tuple[dict[str, Any], str | None] | None:
        preset = find(name, Path(self.path) / group)
        if preset is None:
            return None
        package, here = ("_global_", "") if group in GLOBAL_GROUPS else (None, "@_here_")
        if preset.of is None or preset.choice != name:
            return {"defaults": [f"/{group}/{preset.choice}{here}"]}, package
        chosen = [{f"/{part}" if "@" in part else f"override /{part}": one} for part, one in preset.choose.items()]
        return {"defaults": [f"/{group}/{preset.of}{here}", *chosen, "_self_"], **preset.changes}, package

    def _experiment(self, name: str) -> tuple[dict[str, Any], str] | None:
        found = experiment_on_backbone(name, Path(self.path))
        if found is None:
            return None
        experiment, backbone = found
        return {"defaults": [experiment, {"override /backbone": backbone}]}, "_global_"


@lru_cache(maxsize=1024)
def _parsed(path: Path, _modified_ns: int, _size: int) -> tuple[dict[str, str | None], Any]:
    """Parse the header (``# @package ...``) and settings of a file in this state."""
    with path.open(encoding="utf-8") as stream:  # errors in a stream name its file
        header = ConfigSource._get_header_dict(stream.read()[:512])
        stream.seek(0)
        settings = yaml.load(stream, Loader=_yaml_loader())
    return header, {} if settings is None else settings


@cache
def _yaml_loader() -> Any:
    """Return OmegaConf's loader (numbers as in YAML 1.2, no key twice), with libyaml's parser if available."""
    omega = get_yaml_loader()
    if not yaml.__with_libyaml__:
        return omega
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    class Loader(CParser, omega):  # type: ignore[misc, valid-type]
        def __init__(self, stream: TextIO) -> None:
            CParser.__init__(self, stream)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)

    return Loader


@cache
def _say_once(note: str) -> None:
    sys.stderr.write(f"note: {note}\n")
