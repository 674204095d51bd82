"""Deviations of the memory systems in ``conf/memory``: checked against presets and settings, recorded, listed.

:mod:`memsys.deviations` says what a deviation is and where a system keeps its list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.commands.rendering.markdown import page, render_markdown
from eval.commands.rendering.table import Span, Table, columns
from eval.config.preset_settings import default_settings
from eval.config.presets import CONF, MEMORY, preset_names
from memsys.counting import repeated
from memsys.deviations import ALL, Deviation, read_deviations, system_of
from memsys.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SystemDeviations:
    """A memory system, its presets in ``conf/memory`` by name, and its deviations, most consequential first."""

    system: str
    presets: tuple[str, ...]
    deviations: tuple[Deviation, ...]


def systems(folder: Path = MEMORY) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """Find the memory systems that presets configure.

    Returns:
        System -> place of its deviations and names of its presets, both sorted by name.

    Raises:
        ConfigError: a preset names no class of a package that is there.
    """
    found: dict[str, tuple[Path, list[str]]] = {}
    for preset in preset_names(folder):
        name, place = system_of(str(_settings(preset, folder).get("_target_")))
        found.setdefault(name, (place, []))[1].append(preset)
    return {name: (place, tuple(presets)) for name, (place, presets) in sorted(found.items())}


def load_deviations() -> list[SystemDeviations]:
    """Read and check the deviations of every system that has a file of them.

    Raises:
        ConfigError: a file is broken, names a preset or setting that is not there, or repeats another system's id.
    """
    found = [
        SystemDeviations(name, presets, checked(read_deviations(place), presets, place))
        for name, (place, presets) in systems().items()
        if place.is_file()
    ]
    shared = sorted(repeated(deviation.id for system in found for deviation in system.deviations))
    if shared:
        raise ConfigError(f"two systems have a deviation called {', '.join(shared)}; begin each id with its system")
    return found


def checked(
    deviations: Sequence[Deviation], presets: Sequence[str], place: Path, folder: Path = MEMORY
) -> tuple[Deviation, ...]:
    """Return a system's deviations when the presets and settings they name are there.

    Raises:
        ConfigError: names the file, the deviation and what is not there.
    """
    for deviation in deviations:
        unknown = [name for name in deviation.presets if name not in (*presets, ALL)]
        if unknown:
            raise ConfigError(
                f"{place}: {deviation.id}: preset {', '.join(unknown)} is unknown; the system's presets are "
                f"{', '.join(presets)}"
            )
        named = presets if ALL in deviation.presets else deviation.presets
        if deviation.option is not None and not _is_setting(deviation.option, named, folder):
            raise ConfigError(
                f"{place}: {deviation.id}: option {deviation.option} is not a setting of these presets; name one as "
                "memory.KEY or GROUP.KEY of conf/, or null where none restores the behaviour"
            )
    return tuple(deviations)


def _is_setting(option: str, presets: Sequence[str], folder: Path) -> bool:
    """Return whether a preset of the option's group has the setting; of ``memory``, one that the deviation names."""
    group, _, key = option.partition("=")[0].partition(".")
    where = folder if group == "memory" else CONF / group
    names = presets if group == "memory" else preset_names(where)
    return bool(key) and any(
        key == name or name.startswith(f"{key}.") for one in names for name in _settings(one, where)
    )


def _settings(preset: str, folder: Path) -> Mapping[str, Any]:
    return default_settings(preset, folder) or {}


def deviations_page(systems: Sequence[SystemDeviations]) -> str:
    """Return all deviations as Markdown: how many each system has, then each with its place and reason."""
    count = sum(len(system.deviations) for system in systems)
    return page(
        "# Deviations from papers and released code",
        f"{count} deviations of {len(systems)} memory systems, the most consequential first. They are from each "
        "system's `deviations.yaml`; a run's `run.json` names those that apply to it.",
        render_markdown(_counts(systems), level=0),
        *(part for system in systems for part in _system(system)),
    )


def _counts(systems: Sequence[SystemDeviations]) -> Table:
    rows = [
        (
            Span(system.system, link=f"#{system.system}"),
            len(system.deviations),
            sum(deviation.option is not None for deviation in system.deviations),
        )
        for system in systems
    ]
    return Table("", columns(("system", "deviations", "restored by a setting")), rows)


def _system(system: SystemDeviations) -> Iterator[str]:
    yield from (f"## {system.system}", f"Presets: {', '.join(system.presets)}")
    yield "\n".join(line for deviation in system.deviations for line in _lines(deviation))


def _lines(deviation: Deviation) -> list[str]:
    option = f"`{deviation.option}` restores theirs" if deviation.option else "no setting restores theirs"
    shows = f"; a parity run shows it in: {', '.join(deviation.parity)}" if deviation.parity else ""
    where = f"{deviation.origin}, {deviation.where}; presets: {', '.join(deviation.presets)}; {option}{shows}."
    return [f"- **{deviation.id}**: {deviation.what} {deviation.why}", f"  ({where})"]
