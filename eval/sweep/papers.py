"""The runs that reproduce a paper: ``conf/papers.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from eval.commands.suggestions import did_you_mean
from eval.config.presets import CONF, read_settings
from memsys.errors import ConfigError

FILE = CONF / "papers.yaml"


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that one command line of ``memsys run -m`` makes.

    Attributes:
        run: its settings; commas make a run of each value.
        tables: of the paper that the runs fill.
        claim: sentence of the paper that they test, where they fill no table.
    """

    run: tuple[str, ...]
    tables: tuple[int, ...] = ()
    claim: str = ""

    @property
    def title(self) -> str:
        """Purpose of the runs."""
        if not self.tables:
            return self.claim
        return f"Table{'s' if len(self.tables) > 1 else ''} {', '.join(map(str, self.tables))}"


@dataclass(frozen=True, slots=True)
class PaperRuns:
    """All runs of a paper.

    Attributes:
        name: of the paper, as in ``results/printed``.
        groups: its runs, table by table.
        released: preset made from the paper's text -> preset of the authors' code.
        judged: tables of which a language model grades the answers.
        judges: settings of ``memsys judge`` for them, by the backbone of the run; ``default`` for the others.
    """

    name: str
    groups: tuple[RunGroup, ...]
    released: Mapping[str, str] = field(default_factory=dict)
    judged: tuple[int, ...] = ()
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def chosen(self, tables: tuple[int, ...]) -> tuple[RunGroup, ...]:
        """Return the groups that fill one of the tables; all where none is named.

        Raises:
            ConfigError: no group fills one of the tables.
        """
        known = sorted({number for group in self.groups for number in group.tables})
        for number in tables:
            if number not in known:
                raise ConfigError(f"no run of {self.name} fills table {number}; choose of {', '.join(map(str, known))}")
        return tuple(group for group in self.groups if not tables or set(tables) & set(group.tables))


@cache
def load_papers() -> Mapping[str, PaperRuns]:
    """Return the papers by name.

    Raises:
        ConfigError: an entry has a setting that does not exist, or lacks one.
    """
    return {name: _paper(name, entry) for name, entry in read_settings(FILE).items()}


def load_paper(name: str) -> PaperRuns:
    """Return a paper.

    Raises:
        ConfigError: there is no such name.
    """
    papers = load_papers()
    if name not in papers:
        raise ConfigError(f"{name!r} is not in {FILE}{did_you_mean(name, papers)}; there are {', '.join(papers)}")
    return papers[name]


def _paper(name: str, entry: Any) -> PaperRuns:
    try:
        groups = tuple(RunGroup(**{key: _sequence(value) for key, value in group.items()}) for group in entry["groups"])
        rest = {key: _sequence(value) for key, value in entry.items() if key != "groups"}
        return PaperRuns(name, groups, **rest)
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(f"{FILE}: {name}: {error}") from error


def _sequence(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sequence(each) for key, each in value.items()}
    return tuple(value) if isinstance(value, list) else value
