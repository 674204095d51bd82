"""Settings of the audit: ``conf/audit.yaml``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.config.presets import CONF, make_preset
from eval.metrics.registry import find_metric
from memsys.errors import ConfigError

FILE = CONF / "audit.yaml"


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Settings of the audit.

    Attributes:
        metrics: definitions, the first one leads.
        people: entry of the catalogue with labels by people.
        wrong: entry whose answers are wrong on purpose.
        shared: least number of equal answers that a judge is compared with people on.
    """

    metrics: Sequence[str]
    people: str
    wrong: str
    shared: int

    def __post_init__(self) -> None:
        for name in self.metrics:
            if not find_metric(name).lexical:
                raise ConfigError(f"{FILE}: metrics: {name} needs a model or retrievals; the audit takes texts alone")

    @property
    def lead(self) -> str:
        """The metric that orders tables."""
        return self.metrics[0]


def load_config(path: Path = FILE) -> AuditConfig:
    """Read the settings.

    Raises:
        ConfigError: a setting is missing, unknown or wrong.
    """
    return make_preset(AuditConfig, path)
