"""Settings of the page: ``eval/report/report.yaml``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.config.presets import make_preset
from eval.metrics.registry import METRICS
from memsys.errors import ConfigError

FILE = Path(__file__).parent / "report.yaml"
#: Scores that are no metric of the registry.
_SHARES = ("abstained", "trapped")


@dataclass(frozen=True, slots=True)
class PageConfig:
    """Settings of the page.

    Attributes:
        answer: metrics of the first view, the first one being shown at first.
        leaderboard: group -> metrics to choose from.
        questions: scores shown with each answer.
    """

    answer: Sequence[str]
    leaderboard: Mapping[str, Sequence[str]]
    questions: Sequence[str]

    def __post_init__(self) -> None:
        for name in (*self.answer, *self.questions, *(name for group in self.leaderboard.values() for name in group)):
            if name not in METRICS and name not in _SHARES:
                raise ConfigError(f"report: {name!r} is not a score; `memsys score --list` lists them")


def load_config(path: Path = FILE) -> PageConfig:
    """Read the configuration of the page.

    Raises:
        ConfigError: a setting is missing or unknown, or names no score.
    """
    return make_preset(PageConfig, path)
