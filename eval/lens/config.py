"""What the lens shows: ``conf/lens.yaml``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.configs.presets import CONF, make_preset
from eval.metrics.registry import find_metric
from memsys.errors import ConfigError

FILE = CONF / "lens.yaml"


@dataclass(frozen=True, slots=True)
class LensConfig:
    """What is set side by side.

    Attributes:
        definitions: group name -> metrics; the first metric of the first group leads.
        grid: metrics that are crossed with every reading of category 5 and every mean.
    """

    definitions: Mapping[str, Sequence[str]]
    grid: Sequence[str]

    def __post_init__(self) -> None:
        for metric in (*self.grid, *(metric for group in self.definitions.values() for metric in group)):
            find_metric(metric)
        if not any(self.definitions.values()):
            raise ConfigError("lens.definitions is empty; name at least one metric")

    @property
    def lead(self) -> str:
        """The metric that the others are held against."""
        return next(metric for group in self.definitions.values() for metric in group)


def load_config(path: Path = FILE) -> LensConfig:
    """Read the configuration of the lens.

    Raises:
        ConfigError: a setting is missing or unknown, or names no metric.
    """
    return make_preset(LensConfig, path)
