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
        tested: scores that systems are ranked and tested by, the one shown at first before the others.
        columns: group -> further scores that can be shown as columns.
        questions: scores shown with each answer.
        live: answers shown of a run that is going on, the newest ones.
        live_score: score of these answers.
    """

    tested: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    questions: Sequence[str]
    live: int
    live_score: str

    def __post_init__(self) -> None:
        columns = (name for group in self.columns.values() for name in group)
        for name in (*self.tested, *self.questions, *columns, self.live_score):
            if name not in METRICS and name not in _SHARES:
                raise ConfigError(f"report: {name!r} is not a score; `memsys score --list` lists them")


def load_config(path: Path = FILE) -> PageConfig:
    """Read the configuration of the page.

    Raises:
        ConfigError: a setting is missing or unknown, or names no score.
    """
    return make_preset(PageConfig, path)
