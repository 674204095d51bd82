"""Protocols: how each paper turned per-question scores into the numbers it printed (``conf/protocol``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from eval.configs.presets import CONF, find_preset, make_preset, preset_names
from eval.metrics.registry import find_metric
from memsys.errors import ConfigError

FOLDER = CONF / "protocol"
#: Settings besides categories and labels that make another protocol of a preset.
_CHANGEABLE = ("adversarial", "weighting", "columns")

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
    """

    name: str
    source: str
    categories: Sequence[int]
    adversarial: Adversarial
    weighting: Weighting
    labels: Mapping[int, str]
    columns: Mapping[str, str]
    printed_labels: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, choices in (("adversarial", get_args(Adversarial)), ("weighting", get_args(Weighting))):
            if getattr(self, key) not in choices:
                raise ConfigError(f"protocol.{key}={getattr(self, key)!r}; choose one of {', '.join(choices)}")
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ConfigError(f"protocol.categories={list(self.categories)}; name each category once")
        unlabelled = [category for category in self.categories if category not in self.labels]
        if unlabelled:
            raise ConfigError(f"protocol.labels has no label for categories {unlabelled}")
        for metric in self.columns.values():
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


def recorded_protocol(settings: Mapping[str, Any]) -> Protocol:
    """The protocol that a run was asked for: a preset of ``conf/protocol``, or one with settings changed.

    Labels and categories that a preset has got since then count; a changed one is named after its changes.

    Args:
        settings: ``config.protocol`` of ``run.json``.

    Raises:
        ConfigError: there is no such preset, or a setting is wrong.
    """
    preset = load_protocol(str(settings.get("name")))
    changed: dict[str, Any] = {
        key: settings[key] for key in _CHANGEABLE if key in settings and settings[key] != getattr(preset, key)
    }
    labels = {int(number): label for number, label in (settings.get("labels") or {}).items()}
    if any(preset.labels.get(number, label) != label for number, label in labels.items()):
        changed["labels"] = {**preset.labels, **labels}
    categories = settings.get("categories") or preset.categories
    if not set(categories) <= set(preset.categories):
        changed |= {"categories": categories, "labels": {**preset.labels, **labels}}
    if not changed:
        return preset
    said = ", ".join(f"{key}={value}" if isinstance(value, str) else key for key, value in changed.items())
    return replace(preset, **changed, name=f"{preset.name} with other {said}")


def protocol_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Names of the protocols there are, sorted."""
    return preset_names(folder)
