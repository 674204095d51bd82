"""Protocols: how each paper turned per-question scores into the numbers it printed (``conf/protocol``)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from eval.config.presets import CONF, find_preset, make_preset, preset_names
from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import find_metric
from memsys.errors import ConfigError

FOLDER = CONF / "protocol"
#: Settings besides labels that make another protocol of a preset.
_CHANGEABLE = ("adversarial", "weighting", "columns")

#: Adversarial questions: ``paper_trap`` scores against the false answer, so that being fooled counts 1; ``abstain``
#: scores 1 for an abstention; ``exclude`` leaves them out.
Adversarial = Literal["paper_trap", "abstain", "exclude"]
#: ``question_mean`` weighs categories by their questions, ``category_mean`` equally.
Weighting = Literal["question_mean", "category_mean"]


@dataclass(frozen=True, slots=True)
class Averaging:
    """Averaging rule of scores, for any metric.

    Attributes:
        adversarial: treatment of adversarial questions.
        weighting: of the overall mean.
    """

    adversarial: Adversarial
    weighting: Weighting

    def __post_init__(self) -> None:
        for key, choices in (("adversarial", get_args(Adversarial)), ("weighting", get_args(Weighting))):
            if getattr(self, key) not in choices:
                raise ConfigError(f"protocol.{key}={getattr(self, key)!r}; choose one of {', '.join(choices)}")

    def counts(self, kind: str) -> bool:
        """Return whether questions of a kind enter the overall mean."""
        return kind != ADVERSARIAL or self.adversarial != "exclude"


@dataclass(frozen=True, slots=True)
class Protocol(Averaging):
    """A paper's protocol: its averaging, the metrics of its columns, and its names of question categories.

    Attributes:
        name: name of the preset.
        source: paper or repository, and where in it.
        labels: kind of question -> label, in table order. Questions of other kinds count too; their categories come
            after these and are labelled by their kind.
        printed_labels: labels the paper printed where they differ, by kind; SAGE's are wrong.
        columns: printed column name -> metric.
        primary: metric whose overall value is tested: Holm's correction runs over its tests, all others explore.
    """

    name: str
    source: str
    labels: Mapping[str, str]
    columns: Mapping[str, str]
    printed_labels: Mapping[str, str] = field(default_factory=dict)
    primary: str = ""

    def __post_init__(self) -> None:
        Averaging.__post_init__(self)
        for name in ("labels", "printed_labels"):
            wrong = [key for key in getattr(self, name) if not isinstance(key, str)]
            if wrong:
                raise ConfigError(f"protocol.{name} names {wrong}; name kinds of questions, such as single_hop")
        if not self.columns or not isinstance(self.columns, Mapping):
            raise ConfigError(f"protocol.columns={self.columns!r} must name columns with their metrics: {{F1: f1_set}}")
        named = {f"columns.{column}": metric for column, metric in self.columns.items()}
        for key, metric in {**named, **({"primary": self.primary} if self.primary else {})}.items():
            find_metric(metric, f"protocol.{key}={metric}: ")

    def place(self, kind: str) -> int:
        """Return the position of a category in a table; categories without a label come last."""
        return list(self.labels).index(kind) if kind in self.labels else len(self.labels)

    def label(self, kind: str) -> str:
        """Return the label of a category, its own name if the protocol has none."""
        return self.labels.get(kind, kind.replace("_", " "))

    def printed_label(self, kind: str) -> str:
        """Return the label of a kind in the paper's own tables."""
        return self.printed_labels.get(kind, self.label(kind))


@lru_cache(maxsize=64)
def load_protocol(name: str, folder: Path = FOLDER) -> Protocol:
    """Read ``conf/protocol/<name>.yaml`` without Hydra, for scoring and tables.

    Raises:
        ConfigError: there is no such protocol, or a setting is wrong.
    """
    return make_preset(Protocol, find_preset(name, folder, "protocol"))


def recorded_protocol(settings: Mapping[str, Any]) -> Protocol:
    """Return the protocol that a run was asked for: a preset of ``conf/protocol``, or one with settings changed.

    Labels that a preset has got since then count; a changed protocol is named after its changes.

    Args:
        settings: ``config.protocol`` of ``run.json``.

    Raises:
        ConfigError: there is no such preset, or a setting is wrong.
    """
    preset = load_protocol(str(settings.get("name")))
    changed: dict[str, Any] = {
        key: settings[key] for key in _CHANGEABLE if key in settings and settings[key] != getattr(preset, key)
    }
    labels = {kind: label for kind, label in (settings.get("labels") or {}).items() if not str(kind).isdigit()}
    if any(preset.labels.get(kind, label) != label for kind, label in labels.items()):
        changed["labels"] = {**preset.labels, **labels}
    if not changed:
        return preset
    said = ", ".join(f"{key}={value}" if isinstance(value, str) else key for key, value in changed.items())
    return replace(preset, **changed, name=f"{preset.name} with other {said}")


def protocol_names() -> tuple[str, ...]:
    """Return the names of all protocols, sorted."""
    return preset_names(FOLDER)
