"""Every preset of ``conf/memory`` made small, so that a short conversation reaches every stage of a system.

A system that waits for many memories keeps ``small.yaml`` beside its code, with settings by which it waits for a few.
"""

from typing import Any

from eval.configs.presets import read_settings
from memsys.departures import system_of
from memsys.protocol import MemoryConfig
from tests.support.composing import composed, memory_config

#: Beside a system's code: settings by which a conversation of a few dozen turns reaches every stage of it.
FILE = "small.yaml"


class EveryOtherWord:
    """Stands in for LLMLingua-2, which is not in any package."""

    def prune(self, text: str) -> str:
        """Leave every other word out."""
        return " ".join(text.split()[::2])


#: Functions that load a model which no package holds, with what takes their place.
STAND_INS: dict[str, Any] = {"baselines.pruned.compressor.load": lambda settings: EveryOtherWord()}


def small_settings(preset: str) -> dict[str, Any]:
    """The settings of the system's own :data:`FILE`; none where it has no such file."""
    _, place = system_of(str(composed(preset)["_target_"]), FILE)
    return read_settings(place) if place.is_file() else {}


def small_config(preset: str) -> MemoryConfig:
    """The preset with small settings."""
    return memory_config(preset, **small_settings(preset))
