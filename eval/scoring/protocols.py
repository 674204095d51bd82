"""Protocols: how each paper turned per-question scores into the numbers it printed (``conf/protocol``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from eval.configs.presets import CONF, find_preset, make_preset, preset_names
from eval.metrics.registry import find_metric
from memsys.errors import ConfigError

FOLDER = CONF / "protocol"

#: Category 5: ``paper_trap`` scores against the false answer, so that being fooled counts 1; ``abstain`` scores 1 for
#: an abstention; ``exclude`` leaves it out.
Adversarial = Literal["paper_trap", "abstain", "exclude"]
#: ``question_mean`` weighs categories by their questions, ``category_mean`` equally.
Weighting = Literal["question_mean", "category_mean"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way to average.

    Attributes:
        name: name of the preset.
        source: paper or repository, and where in it.
        categories: categories that enter the overall mean, in table order.
        adversarial: treatment of category 5.
        weighting: of the overall mean.
        labels: what each category number means.
        printed_labels: labels the paper printed where they differ; SAGE's are wrong.
        columns: printed column name -> metric.
        primary: metric whose overall value is tested: Holm's correction runs over its tests, all others explore.
    """

    name: str
    source: str
    categories: Sequence[int]
    adversarial: Adversarial
    weighting: Weighting
    labels: Mapping[int, str]
    columns: Mapping[str, str]
    printed_labels: Mapping[int, str] = field(default_factory=dict)
    primary: str = ""

    def __post_init__(self) -> None:
        for key, choices in (("adversarial", get_args(Adversarial)), ("weighting", get_args(Weighting))):
            if getattr(self, key) not in choices:
                raise ConfigError(f"protocol.{key}={getattr(self, key)!r}; choose one of {', '.join(choices)}")
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ConfigError(f"protocol.categories={list(self.categories)}; name each category once")
        unlabelled = [category for category in self.categories if category not in self.labels]
        if unlabelled:
            raise ConfigError(f"protocol.labels has no label for categories {unlabelled}")
        for metric in (*self.columns.values(), *filter(None, [self.primary])):
            find_metric(metric)

    def printed_label(self, category: int) -> str:
        """Label of a category in the paper's own tables."""
        return self.printed_labels.get(category, self.labels[category])


def load_protocol(name: str, folder: Path = FOLDER) -> Protocol:
    """Read ``conf/protocol/<name>.yaml`` without Hydra, for scoring and tables.

    Raises:
        ConfigError: there is no such protocol, or a setting is wrong.
    """
    return make_preset(Protocol, find_preset(name, folder, "protocol"))


def protocol_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Names of the protocols there are, sorted."""
    return preset_names(folder)
