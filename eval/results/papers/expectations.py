"""Counts that show whether a method worked, and what its paper states of them: ``expectations.yaml`` next to a system.

The file is a list of :class:`MethodCount`. A value is expected only where a paper, its authors' code or a
specification states it; everything else has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from eval.config.memory_parts import memory_parts
from eval.loaders.registry import DATASETS
from memsys.deviations import system_of
from memsys.errors import ConfigError
from memsys.rows import RowError, record_from
from memsys.yaml_files import read_yaml

FILE = "expectations.yaml"
#: A measured value may be this many times a stated number, or so small a part of it.
_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """Stated range or value of a count.

    Attributes:
        value: as a table shows it.
        source: paper and place in it, or whose code.
        dataset: key of the data set that it holds for; empty: any.
        low: least value that fits; ``None`` where no least one is stated.
        high: greatest value that fits.
        number: the one number that is stated for a whole conversation; values within a factor of two of it fit.
    """

    value: str
    source: str
    dataset: str = ""
    low: float | None = None
    high: float | None = None
    number: float | None = None

    def fits(self, value: float) -> bool:
        """Return whether a measured value lies in the stated range, and near the stated number."""
        near = self.number is None or self.number / _FACTOR <= value <= _FACTOR * self.number
        return near and (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    @property
    def bounded(self) -> bool:
        """Whether a range or a number is stated."""
        return self.low is not None or self.high is not None or self.number is not None


@dataclass(frozen=True, slots=True)
class MethodCount:
    """One count of a method.

    Attributes:
        statistic: path of a statistic of the memory; of ``in: trace`` a number of the retrievals' traces, or
            ``path=word`` for the share of questions with this word.
        what: plain description with its unit.
        where: ``in`` of the file: statistics of the memory (mean over conversations), or traces (mean over questions).
        take: which figure of a statistic that has several values.
        of: statistics whose sum it is a percentage of; none for the count itself.
        expected: what is stated of it, the first that holds for a data set counts.
    """

    statistic: str
    what: str
    where: Literal["memory", "trace"] = "memory"
    take: Literal["mean", "max", "min"] = "mean"
    of: tuple[str, ...] = ()
    expected: tuple[ExpectedValue, ...] = ()

    def expected_on(self, dataset: str) -> ExpectedValue | None:
        """Return what is stated of it on a data set, by its key."""
        return next((one for one in self.expected if one.dataset in ("", dataset)), None)


def method_counts(memory: Mapping[str, Any]) -> tuple[MethodCount, ...]:
    """Return the counts that a run's system states, a gate's host's behind the gate's; none without a file.

    Args:
        memory: the resolved memory config of a run.

    Raises:
        ConfigError: a system's file is broken.
    """
    return tuple(count for _, part in memory_parts(memory) for count in _own_counts(part))


def _own_counts(memory: Mapping[str, Any]) -> tuple[MethodCount, ...]:
    try:
        file = system_of(str(memory.get("_target_")), FILE)[1]
    except ConfigError:  # a system that is not installed here
        return ()
    return read_counts(file) if file.is_file() else ()


@cache
def read_counts(file: Path) -> tuple[MethodCount, ...]:
    """Read a system's file.

    Raises:
        ConfigError: it cannot be read, a field is missing, unknown or wrong, or a data set is unknown.
    """
    entries = read_yaml(file, "a system names its counts there")
    if not isinstance(entries, list):
        raise ConfigError(f"{file} must hold a list of counts, not {type(entries).__name__}")
    return tuple(_count(entry, f"{file}: entry {number}") for number, entry in enumerate(entries, start=1))


def _count(entry: Any, place: str) -> MethodCount:
    renamed = (
        {("where" if key == "in" else key): value for key, value in entry.items()} if isinstance(entry, dict) else entry
    )
    try:
        count = record_from(MethodCount, renamed)
    except RowError as error:
        raise ConfigError(f"{place}: {error}") from error
    unknown = [one.dataset for one in count.expected if one.dataset and one.dataset not in DATASETS]
    if unknown:
        raise ConfigError(f"{place}: dataset {', '.join(unknown)} is unknown; choose from {', '.join(DATASETS)}")
    return count
