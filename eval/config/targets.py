"""The classes that presets name with ``_target_``: whether they can be imported, and whether they make that part."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from eval.commands.suggestions import did_you_mean
from eval.config.compose import locate
from memsys.errors import ConfigError

#: What a part must have; any class that has it is accepted.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "memory": ("name", "uses_gold", "build"),
    "dataset": ("name", "turn_format", "info", "load"),
    "embedder": ("name", "dimension", "build"),
    "backbone": ("name", "engine", "context_length"),
    "second": ("name", "engine", "context_length"),
    "reader": ("name", "by_kind", "build"),
    "protocol": ("name", "columns", "labels"),
    "scoring": ("name", "metrics"),
    "judge": ("name", "prompt", "repeats"),
}


def check_parts(config: Mapping[str, Any], parts: Iterable[str]) -> None:
    """Refuse a part that is not a mapping of settings: ``memory: rag`` in a file whose ``defaults`` choose the memory.

    Raises:
        ConfigError: names the part and what to write.
    """
    for part in parts:
        value = config.get(part)
        if not isinstance(value, Mapping):
            chosen = value if isinstance(value, str) else "NAME"
            raise ConfigError(
                f"{part}={value!r} is not a mapping of settings: choose it by {part}={chosen} on the command line, in "
                f"a file by `- override /{part}: {chosen}` under defaults"
            )


def check_targets(settings: Mapping[str, Any], group: str) -> None:
    """Refuse classes that cannot be imported, in a part and in the parts within it.

    Args:
        settings: of the part.
        group: dotted name of the part.

    Raises:
        ConfigError: names the setting, and what was raised at the import.
    """
    if "_target_" in settings:
        target = settings["_target_"]
        try:
            locate(str(target))
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"{group}._target_={target} cannot be imported ({_cause(str(target), error)}); "
                "name module and class, in a package that is installed or on PYTHONPATH"
            ) from error
    for key, value in settings.items():
        if isinstance(value, Mapping):
            check_targets(value, f"{group}.{key}")


def check_part(made: object, group: str, settings: Mapping[str, Any]) -> None:
    """Refuse what a preset made if it is another part, or none.

    Args:
        made: what came of the preset.
        group: name of the part.
        settings: of the part.

    Raises:
        ConfigError: names the class, and what it lacks.
    """
    if "_target_" not in settings:
        named = f"{group}={settings['name']}" if isinstance(settings.get("name"), str) else group
        raise ConfigError(f"{named}: its file has no _target_; name the class of the {group} there")
    if group != "memory" and isinstance(settings.get("name"), str) and not settings["name"].strip():
        raise ConfigError(f"{group}.name={settings['name']!r} is what tables and records call it; give it a name")
    lacking = [name for name in _NEEDED.get(group, ()) if not hasattr(made, name)]
    if lacking:
        target = settings["_target_"]
        raise ConfigError(f"{group}._target_={target} makes no {group}: it has no {', '.join(lacking)}")


def _cause(target: str, error: BaseException) -> str:
    """Return what was raised at the import, without what Hydra's message puts before and after it."""
    module, _, name = target.rpartition(".")
    if module in sys.modules:
        there = [each for each, value in vars(sys.modules[module]).items() if isinstance(value, type)]
        return f"{module} has no {name}{did_you_mean(name, there)}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 and lines[0].startswith("Error loading") else " ".join(lines[:1])
