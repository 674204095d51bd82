"""Deviations of a memory system, as the record of a run has them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eval.config.memory_parts import memory_parts
from memsys.deviations import Deviation, read_deviations, system_of
from memsys.vocabulary import Json


def run_deviations(memory: Mapping[str, Any]) -> list[dict[str, Json]] | None:
    """Return what a run's record says of the deviations of its memory.

    Args:
        memory: the resolved memory config; of a gate, ``host`` holds the host's.

    Returns:
        Id and sentence of each deviation of the run's preset, the host's behind the gate's; ``None`` where a system
        states none, as one that is not part of this project.

    Raises:
        ConfigError: a file of deviations is broken.
    """
    found: list[dict[str, Json]] = []
    for _, part in memory_parts(memory):
        place = system_of(str(part.get("_target_")))[1]
        if not place.is_file():
            return None
        found += [
            {"id": deviation.id, "what": deviation.what}
            for deviation in _read(place)
            if any(deviation.applies_to(name) for name in _preset_names(part))
        ]
    return found


@cache
def _read(place: Path) -> tuple[Deviation, ...]:
    return read_deviations(place)


def _preset_names(memory: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a config's preset: that of a gate is completed by its host's name."""
    name, host = str(memory.get("name")), memory.get("host")
    return (name, name.removesuffix(f"_{host['name']}")) if isinstance(host, Mapping) else (name,)
