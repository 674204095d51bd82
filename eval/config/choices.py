"""Choices of ``conf/`` by name: files, variants and old names, found without Hydra.

A method with several presets has a folder in ``conf/memory``: ``memory=clag/code`` is ``conf/memory/clag/code.yaml``.
Its ``variants.yaml`` holds presets that differ from another by a few settings; ``memory=clag/small`` is one of them.
``variants.yaml`` of ``conf/backbone`` and ``conf/dataset`` holds choices that differ from another's file likewise. In
``conf/experiment`` and ``conf/sweep`` they may make choices of other groups (``choose``) and name a sweep's values
(``sweep``).
The ``name`` of a preset (``clag_small``, ``clag_tau_015``; a variant's is folder and key unless it sets one) is what
tables and run directories show, and a choice as well. ``conf/aliases.yaml`` maps names of earlier versions to choices.
``hydra_plugins/memsys_choices`` makes all of them known to Hydra.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from eval.config.presets import CONF, VARIANTS, description, read_settings
from memsys.errors import ConfigError

MEMORY = CONF / "memory"

#: Groups whose choices set the whole configuration: they are in no default one, so that they are written with ``+``;
#: their variants are named by their key and may choose in other groups.
GLOBAL_GROUPS = ("experiment", "sweep")

_NAME = re.compile(r"^name: *([^\s#]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Preset:
    """One choice of a folder of ``conf/``.

    Attributes:
        name: shown in tables and run directories.
        choice: path below the folder, as on the command line: ``clag/small``.
        about: what the choice is, in one paragraph.
        file: its YAML; of a variant, the ``variants.yaml`` that holds it.
        of: choice that a variant starts from; ``None`` for a preset with a file of its own.
        changes: settings of a variant, its name included.
        choose: choices of other groups that a variant makes: group -> choice.
    """

    name: str
    choice: str
    about: str
    file: Path
    of: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    choose: Mapping[str, str] = field(default_factory=dict)


def presets(folder: Path = MEMORY) -> dict[str, Preset]:
    """Return all presets of a folder and of the folders in it, by name, in the order of their choices.

    Its files are read once and again when one of them has changed.

    Raises:
        ConfigError: two presets have the same name, or a variant is not described as it must be.
    """
    files = ((path, path.stat()) for path in sorted(folder.glob("**/*.yaml")))
    return dict(_presets(folder, tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in files)))


@lru_cache(maxsize=64)
def _presets(folder: Path, _state: tuple[tuple[Path, int, int], ...]) -> dict[str, Preset]:
    found: dict[str, Preset] = {}
    for preset in sorted([*_files(folder), *_variants(folder)], key=lambda preset: preset.choice):
        if preset.name in found:
            raise ConfigError(
                f"{folder}: {found[preset.name].choice} and {preset.choice} are both called {preset.name}; "
                "change the name of one"
            )
        found[preset.name] = preset
    return found


def find(name: str, folder: Path = MEMORY) -> Preset | None:
    """Return the preset of this choice, name or old name; ``None`` if there is none."""
    known = _indexed(folder) if folder == MEMORY else _index(folder)
    return known.get(name) or known.get(aliases(folder.parent).get(folder.name, {}).get(name, ""))


def current_name(name: str, folder: Path = MEMORY) -> str:
    """Return the name that a preset has now; a name that no preset has or had is returned as it is."""
    preset = find(name, folder)
    return name if preset is None else preset.name


def named_systems(name: str, folder: Path = MEMORY) -> list[str]:
    """Return the memories whose description begins with a system's name, the plainest first: Mem0g is mem0_graph.

    Case and hyphens do not count.
    """
    wanted = name.lower().replace("-", "")
    first = {each.name: re.split(r"[\s,']", each.about, maxsplit=1)[0].lower() for each in presets(folder).values()}
    found = [each for each, word in first.items() if word.rstrip(":").replace("-", "") == wanted]
    return sorted(found, key=lambda each: (each != wanted, not first[each].endswith(":")))


def settings_of(preset: Preset, folder: Path = MEMORY) -> dict[str, Any]:
    """Compose a preset's settings as Hydra would, but for choices of other groups in its defaults.

    Raises:
        ConfigError: a file cannot be read, or a preset starts from one that does not exist.
    """
    if preset.of is None:
        return _composed(preset.file, folder)
    return _merged(_settings_of_base(preset, preset.of, folder), preset.changes)


def chosen_settings(name: str, folder: Path, what: str) -> dict[str, Any]:
    """Compose the settings of a choice.

    Args:
        name: of the choice.
        folder: of its group.
        what: how a choice of the group is called in an error.

    Raises:
        ConfigError: there is no such choice; lists those there are.
    """
    preset = find(name, folder)
    if preset is None:
        raise ConfigError(f"{what}={name!r} is unknown; choose one of {', '.join(presets(folder)) or 'none'}")
    return settings_of(preset, folder)


def aliases(conf: Path = CONF) -> Mapping[str, Mapping[str, str]]:
    """Return the names of earlier versions: group -> name -> choice of today; empty without ``aliases.yaml``."""
    path = conf / "aliases.yaml"
    return read_settings(path) if path.is_file() else {}


def experiment_on_backbone(name: str, conf: Path = CONF) -> tuple[str, str] | None:
    """Split the name of an experiment that ends in a backbone's: ``clag_locomo_qwen3_8b`` is ``clag_locomo`` on it.

    Returns:
        Experiment and backbone, or ``None`` if the name is not made of the two.
    """
    for experiment in sorted(presets(conf / "experiment"), key=len, reverse=True):
        backbone = name.removeprefix(f"{experiment}_")
        if backbone != name and find(backbone, conf / "backbone"):
            return experiment, backbone
    return None


def _files(folder: Path) -> Iterator[Preset]:
    pattern = "**/*.yaml" if folder.name == MEMORY.name else "*.yaml"  # elsewhere a folder is a group of its own
    for path in (path for path in folder.glob(pattern) if path.name != VARIANTS):
        choice = path.relative_to(folder).with_suffix("").as_posix()
        named = _NAME.search(path.read_text(encoding="utf-8")) if path.parent != folder else None
        yield Preset(named[1] if named else path.stem, choice, description(path), path)


def _variants(folder: Path) -> Iterator[Preset]:
    for path in sorted([*folder.glob(VARIANTS), *folder.glob(f"*/{VARIANTS}")]):
        method = "" if path.parent == folder else path.parent.name
        folder_prefix, name_prefix = (f"{method}/", f"{method}_") if method else ("", "")
        for key, entry in read_settings(path).items():
            _check_variant(f"{path}: {key}", entry, folder)
            changes = _merged(_naming(folder, f"{name_prefix}{key}"), _settings_of_entry(entry))
            named = folder.name not in GLOBAL_GROUPS and "host" not in changes
            name = str(changes["name"]) if named else f"{name_prefix}{key}"
            about, choose = entry["about"], entry.get("choose", {})
            yield Preset(name, f"{folder_prefix}{key}", about, path, f"{folder_prefix}{entry['of']}", changes, choose)


def _check_variant(where: str, entry: object, folder: Path) -> None:
    needed = {"about", "of"} if folder.name in GLOBAL_GROUPS else {"about", "of", "set"}
    known = needed | {"set", "choose", "sweep"} if folder.name in GLOBAL_GROUPS else needed
    if not isinstance(entry, Mapping) or not needed <= set(entry) <= known:
        more = sorted(known - needed)
        may = f"; it may have {', '.join(f'`{each}`' for each in more)}" if more else ", and nothing else"
        *first, last = [f"`{each}`" for each in sorted(needed)]
        raise ConfigError(f"{where} must have {', '.join(first)} and {last}{may}")


def _naming(folder: Path, name: str) -> dict[str, Any]:
    """Return the settings that name a variant: an experiment in run folders, a sweep in that of its files."""
    if folder.name == "sweep":
        return {"hydra": {"sweep": {"dir": f"${{runs_dir}}/.sweeps/{name}"}}}
    return {"experiment" if folder.name == "experiment" else "name": name}


def _settings_of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a variant; one with values of a sweep is a sweep without ``-m``."""
    swept = {"hydra": {"mode": "MULTIRUN", "sweeper": {"params": entry["sweep"]}}} if "sweep" in entry else {}
    return _merged(entry.get("set", {}), swept)


def _index(folder: Path) -> dict[str, Preset]:
    by_name = presets(folder)
    return by_name | {preset.choice: preset for preset in by_name.values()}


@cache
def _indexed(folder: Path) -> dict[str, Preset]:
    return _index(folder)


def _composed(path: Path, folder: Path) -> dict[str, Any]:
    own = read_settings(path)
    composed: dict[str, Any] = {}
    entries = own.pop("defaults", [])
    for entry in entries if "_self_" in entries else [*entries, "_self_"]:
        if isinstance(entry, str):  # another group's choice (a mapping) is not a setting of this file's own
            composed = _merged(composed, own if entry == "_self_" else _base(entry, path, folder))
    return composed


def _settings_of_base(preset: Preset, of: str, folder: Path) -> dict[str, Any]:
    base, file = find(of, folder), folder / f"{of}.yaml"
    if base is None and not file.is_file():  # a file in a folder of bases is not a choice
        raise ConfigError(f"{preset.file}: {preset.choice} is `of` {of}, which does not exist")
    return _composed(file, folder) if base is None else settings_of(base, folder)


def _base(entry: str, path: Path, folder: Path) -> dict[str, Any]:
    """Return the settings of an entry of a defaults list: ``/memory/clag/paper@_here_``, or a relative path."""
    name = entry.removesuffix("@_here_")
    preset = find(name.removeprefix(f"/{folder.name}/"), folder) if name.startswith("/") else None
    return settings_of(preset, folder) if preset else _composed(path.parent / f"{name}.yaml", folder)


def _merged(base: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in layer.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
