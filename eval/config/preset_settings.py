"""Settings of a part as its preset has them, and those in which a run differs from it."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eval.commands.plugins import VARIABLE
from eval.config.compose import find_settings
from eval.config.presets import MEMORY, current_name
from eval.runs.machine_paths import without_places

#: Groups whose settings a YAML need not all name.
_OPEN = ("roles", "sampling")


def default_settings(name: str, folder: Path) -> Mapping[str, Any] | None:
    """Return the settings of a preset, with those it starts from, flat; ``None`` without one.

    Args:
        name: of the preset.
        folder: of its group, in a folder made as ``conf``.
    """
    return _flat_settings(folder, current_name(name), os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=1024)
def _flat_settings(folder: Path, name: str, _plugins: str) -> Mapping[str, Any] | None:
    found = find_settings(folder.name, name, folder.parent)
    return None if found is None else MappingProxyType(flat(found))


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a configuration by dotted key."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            leaves |= flat(value, f"{prefix}{key}.")
        else:
            leaves[prefix + str(key)] = value
    return leaves


def overrides(settings: Mapping[str, Any], folder: Path = MEMORY) -> dict[str, Any]:
    """Return the settings of a run's memory (or of another part) that differ from its YAML, flat and sorted.

    A key that the run's version did not have yet counts as no difference, nor does an interpolation; a part without a
    YAML has none.
    Roles and sampling take settings that their YAML leaves out: these differ by being there.
    """
    defaults = default_settings(str(settings.get("name")), folder)
    if defaults is None:
        return {}
    own = flat(settings)
    changed = {
        key
        for key, default in defaults.items()
        if key in own and key not in ("_target_", "name") and not _is_interpolation(default) and own[key] != default
    }
    added = {
        key
        for key, value in own.items()
        if key not in defaults and key.partition(".")[0] in _OPEN and value is not None
    }
    return {key: without_places(own[key]) for key in sorted(changed | added)}


def _is_interpolation(value: Any) -> bool:
    return isinstance(value, str) and "${" in value
