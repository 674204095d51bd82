"""Every preset of ``conf/memory`` made small, so that a short conversation reaches every stage of a system."""

from typing import Any

from memsys.protocol import MemoryConfig
from tests.support.composing import composed, memory_config

#: Settings by which systems that wait for many memories do so for a few.
SMALL: dict[str, Any] = {
    "buffer_size": 12,
    "consolidate_every": 5,
    "evo_threshold": 5,
    "chunk_tokens": 30,
    "tau_split": 8,
    "unit_turns": 4,
    "calibration": None,  # holds for a real embedder alone
}


class EveryOtherWord:
    """Stands in for LLMLingua-2, which is not in any package."""

    def prune(self, text: str) -> str:
        """Leave every other word out."""
        return " ".join(text.split()[::2])


#: Functions that load a model which no package holds, with what takes their place.
STAND_INS: dict[str, Any] = {"baselines.pruned.compressor.load": lambda settings: EveryOtherWord()}


def small_settings(preset: str) -> dict[str, Any]:
    """The settings of :data:`SMALL` that a preset has."""
    return {key: value for key, value in SMALL.items() if key in composed(preset)}


def small_config(preset: str) -> MemoryConfig:
    """The preset with small settings."""
    return memory_config(preset, **small_settings(preset))
