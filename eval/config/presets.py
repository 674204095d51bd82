"""Choices of ``conf/`` by name, read without Hydra: a choice is a file of its group's folder."""

import re
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memsys.assets.paths import shipped
from memsys.errors import ConfigError
from memsys.yaml_files import read_yaml

CONF = shipped("conf")

MEMORY = CONF / "memory"

#: Groups whose choices set the whole configuration: the default one has none of them, so they are written with ``+``.
GLOBAL_GROUPS = ("experiment", "sweep")

#: What older runs call a preset in their record -> its name.
_RECORDED_AS = {"rag_turn": "rag"}

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def preset_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the presets of a folder, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def description(preset: Path) -> str:
    """Return a preset's first comment as one line, without instructions to Hydra; empty where it has none."""
    comment = takewhile(lambda line: line.startswith("#"), preset.read_text(encoding="utf-8").splitlines())
    return " ".join(line.removeprefix("#").strip() for line in comment if not line.startswith("# @"))


def descriptions(folder: Path) -> dict[str, str]:
    """Return what each preset of a folder says of itself, by name, sorted."""
    return {name: description(folder / f"{name}.yaml") for name in preset_names(folder)}


def current_name(recorded: str) -> str:
    """Return the name of the preset that a stored run names."""
    return _RECORDED_AS.get(recorded, recorded)


def named_systems(name: str) -> list[str]:
    """Return the memories whose description begins with a system's name, the plainest first: Mem0g is mem0_graph.

    Case and hyphens do not count.
    """
    wanted = name.lower().replace("-", "")
    first = {each: re.split(r"[\s,']", about, maxsplit=1)[0].lower() for each, about in descriptions(MEMORY).items()}
    found = [each for each, word in first.items() if word.rstrip(":").replace("-", "") == wanted]
    return sorted(found, key=lambda each: (each != wanted, not first[each].endswith(":")))


def find_preset(name: str, folder: Path, what: str) -> Path:
    """Return the file of a preset.

    Args:
        name: of the preset.
        folder: where presets of its kind lie.
        what: how its kind is called in an error.

    Raises:
        ConfigError: there is no such preset; lists those there are.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise unknown_preset(name, folder, what)
    return path


def unknown_preset(name: str, folder: Path, what: str) -> ConfigError:
    """Make the error that a folder has no preset of this name; it lists those there are."""
    known = ", ".join(preset_names(folder)) or "none: the folder is empty"
    return ConfigError(f"{what}={name!r} is unknown; choose one of {known}")


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file of settings.

    Raises:
        ConfigError: it is missing, no YAML, or holds no settings by name.
    """
    settings = read_yaml(path, "name a YAML file of settings")
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} must hold settings by name, not {type(settings).__name__}")
    return settings


def default_choice(part: str) -> str:
    """Return the choice of a part, such as ``protocol``, that a run has where nothing names another."""
    entries = read_settings(CONF / "config.yaml")["defaults"]
    return next(str(entry[part]) for entry in entries if isinstance(entry, dict) and part in entry)


def make_preset(kind: type[T], path: Path) -> T:
    """Make the configuration object of a YAML file; its ``_target_`` is Hydra's alone.

    Raises:
        ConfigError: the file cannot be read, or a setting is missing, unknown or wrong.
    """
    return made(kind, read_settings(path), path)


def made(kind: type[T], settings: dict[str, Any], path: Path) -> T:
    """Make the configuration object of settings that come from a YAML file; see :func:`make_preset`."""
    settings.pop("_target_", None)
    try:
        return kind(**settings)
    except TypeError as error:
        known = ", ".join(item.name for item in fields(kind))
        raise ConfigError(f"{path}: {error}; settings are {known}") from error
