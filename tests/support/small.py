"""Every preset of ``conf/memory`` made small, so that a short conversation reaches every stage of a system.

A system that waits for many memories keeps ``small.yaml`` beside its code, with settings by which it waits for a few.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from baselines.lightmem.attention import TokenAttention
from eval.config.presets import read_settings
from memsys.deviations import system_of
from memsys.protocol import MemoryConfig
from tests.support.composing import composed, memory_config

#: Beside a system's code: settings by which a conversation of a few dozen turns reaches every stage of it.
FILE = "small.yaml"


class EveryOtherWord:
    """Stands in for LLMLingua-2, which is not in any package."""

    def prune(self, text: str) -> str:
        """Leave every other word out."""
        return " ".join(text.split()[::2])


class WordOverlap:
    """Stands in for the encoder of LLMLingua-2: a token attends to equal tokens, and a little to all."""

    def count(self, text: str) -> int:
        """Count words."""
        return len(text.split())

    def attention(self, texts: Sequence[str]) -> TokenAttention:
        """Compare all words."""
        tokens = [(word, number) for number, text in enumerate(texts) for word in text.split()]
        words = np.array(["[CLS]", *(word for word, _ in tokens), "[SEP]"])
        weights = (words[:, None] == words[None, :]) + 0.01 * np.arange(1, len(words) + 1)[None, :]
        return TokenAttention(weights, (-1, *(number for _, number in tokens), -1))


#: Functions that load a model which no package holds, with what takes their place.
STAND_INS: dict[str, Any] = {
    "baselines.lightmem.attention.load": lambda settings, layers: WordOverlap(),
    "baselines.pruned.compressor.load": lambda settings: EveryOtherWord(),
}


def small_settings(preset: str) -> dict[str, Any]:
    """The settings of the system's own :data:`FILE`; none where it has no such file."""
    _, place = system_of(str(composed(preset)["_target_"]), FILE)
    return read_settings(place) if place.is_file() else {}


def small_config(preset: str) -> MemoryConfig:
    """The preset with small settings; a group of settings keeps those that the small ones do not name."""
    whole = composed(preset)
    changes = {
        key: {**whole[key], **change} if isinstance(change, dict) else change
        for key, change in small_settings(preset).items()
    }
    return memory_config(preset, **changes)
