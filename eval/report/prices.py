"""Prices of hosted backbones: ``conf/prices.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from eval.configs.presets import CONF, read_settings
from memsys.errors import ConfigError

FILE = CONF / "prices.yaml"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float


@cache
def load_prices() -> Mapping[str, Price]:
    """Prices by name of the backbone.

    Raises:
        ConfigError: an entry is no pair of numbers.
    """
    found = {}
    for name, entry in read_settings(FILE).items():
        numbers = entry if isinstance(entry, dict) else {}
        if set(numbers) != {"prompt", "completion"} or not all(isinstance(v, int | float) for v in numbers.values()):
            raise ConfigError(f"{FILE}: {name} needs prompt and completion in dollars per million tokens")
        found[name] = Price(**numbers)
    return found
