"""Prices of hosted backbones: ``conf/prices.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eval.configs.presets import CONF, read_settings
from memsys.errors import ConfigError

FILE = CONF / "prices.yaml"
_NUMBERS, _KEYS = ("prompt", "completion"), {"prompt", "completion", "date", "source"}
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, with the day on which they held and who says so; ``""`` where the file does not.

    The discount that providers give for prompts they have seen before is not counted.
    """

    prompt: float
    completion: float
    date: str = ""
    source: str = ""

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Dollars of these tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


@cache
def load_prices(path: Path = FILE) -> Mapping[str, Price]:
    """Prices by name of the backbone; one whose entry is null has none.

    Raises:
        ConfigError: an entry lacks a number, or has a setting that is none.
    """
    return {name: _price(path, name, entry) for name, entry in read_settings(path).items() if entry is not None}


def _price(path: Path, name: str, entry: Any) -> Price:
    given = entry if isinstance(entry, dict) else {}
    numbers = [given.get(key) for key in _NUMBERS]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and one >= 0 for one in numbers):
        raise ConfigError(f"{path}: {name} needs prompt and completion in dollars per million tokens, or null")
    if unknown := sorted(set(given) - _KEYS):
        raise ConfigError(f"{path}: {name}.{unknown[0]} is unknown; known are {', '.join(sorted(_KEYS))}")
    texts = {key: str(given.get(key, "")) for key in ("date", "source")}
    return Price(float(given["prompt"]), float(given["completion"]), **texts)
