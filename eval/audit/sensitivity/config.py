"""Metric definitions that are compared: those of each group of the registry, in the order of ``lens.yaml``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval.config.presets import make_preset
from eval.metrics.registry import METRICS, definitions, find_metric
from memsys.errors import ConfigError

FILE = Path(__file__).parent / "lens.yaml"


@dataclass(frozen=True, slots=True)
class LensConfig:
    """Settings of the comparison of definitions.

    Attributes:
        definitions: group name -> metrics; the first metric of the first group leads.
        grid: metrics that are crossed with every reading of category 5 and every mean.
        counts: data set preset -> questions per category, instead of those that the data set's loader names.
    """

    definitions: Mapping[str, Sequence[str]]
    grid: Sequence[str]
    counts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for metric in (*self.grid, *(metric for group in self.definitions.values() for metric in group)):
            find_metric(metric)
        if not any(self.definitions.values()):
            raise ConfigError("lens.definitions is empty; name at least one metric")

    @property
    def lead(self) -> str:
        """The metric that the others are compared with."""
        return next(metric for group in self.definitions.values() for metric in group)


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings of the file; ``lead`` is the group whose definitions come first and are crossed with everything."""

    lead: str


def load_config(path: Path = FILE) -> LensConfig:
    """Read the configuration of the lens.

    Raises:
        ConfigError: a setting is missing or unknown, or names no group.
    """
    lead = make_preset(_Settings, path).lead
    groups = definitions()
    if lead not in groups:
        raise ConfigError(f"{path}: lead={lead!r}; choose a group of definitions: {', '.join(groups)}")
    return LensConfig(
        definitions={lead: groups[lead], **groups},
        grid=[name for name in groups[lead] if METRICS[name].function is not None],
    )
