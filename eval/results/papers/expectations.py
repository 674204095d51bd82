"""Counts that show whether a method worked, and what its paper states of them: ``expectations.yaml`` beside a system.

The file is a list of :class:`MethodCount`. A value is expected only where a paper, its authors' code or a
specification states it; everything else has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eval.loaders.registry import DATASETS, info_of
from memsys.departures import system_of
from memsys.errors import ConfigError
from memsys.rows import RowError, record_from
from memsys.yaml_files import read_yaml

if TYPE_CHECKING:
    from eval.results.tables.stored import StoredRun

FILE = "expectations.yaml"
#: A measured value may be so many times a stated number, or so small a part of it.
_FACTOR = 2.0
#: Stands in ``of`` for the turns ingested.
_TURNS = "turns"


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """What is stated of a count.

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
        """Whether a measured value lies in the stated range, and near the stated number."""
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
        """What is stated of it on a data set, by its key."""
        return next((one for one in self.expected if one.dataset in ("", dataset)), None)


def method_counts(memory: Mapping[str, Any]) -> tuple[MethodCount, ...]:
    """Counts that a run's system names, those of a gate's host behind the gate's; none for a system without a file.

    Args:
        memory: the resolved memory config of a run.

    Raises:
        ConfigError: a system's file is broken.
    """
    host = memory.get("host")
    below = method_counts(host) if isinstance(host, Mapping) else ()
    try:
        file = system_of(str(memory.get("_target_")), FILE)[1]
    except ConfigError:  # a system that is not installed here
        return below
    return (*(read_counts(file) if file.is_file() else ()), *below)


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


def fit(expected: ExpectedValue | None, value: float | None, run: "StoredRun") -> bool | None:
    """Whether a value of a run fits what is stated.

    Returns:
        ``None`` where there is nothing to hold it against: nothing measured or stated, or a number that is stated for
        whole conversations beside a run on their first sessions.
    """
    if expected is None or value is None or not expected.bounded:
        return None
    if expected.number is not None and (run.record["config"].get("dataset") or {}).get("limit_sessions"):
        return None
    return expected.fits(value)


def measured(count: MethodCount, run: "StoredRun") -> float | None:
    """The value of a count in a run; ``None`` where the run does not have it."""
    if count.where == "trace":
        return _traced(count, run.summary.get("trace") or {}, run.asked)
    statistics = (run.summary.get("memory") or {}).get("statistics") or {}
    found = statistics.get(count.statistic)
    if found is None or not count.of:
        return None if found is None else float(found[count.take])
    total = sum(_total(name, run, statistics) for name in count.of)
    return 100 * float(found["sum"]) / total if total else None


def _total(name: str, run: "StoredRun", statistics: Mapping[str, Any]) -> float:
    sizes = (run.summary.get("memory") or {}).get("sizes") or {}
    found = sizes.get(name) if name == _TURNS else statistics.get(name)
    return float((found or {}).get("sum", 0.0))


def _traced(count: MethodCount, trace: Mapping[str, Any], questions: int) -> float | None:
    path, equals, word = count.statistic.partition("=")
    if not equals:
        found = (trace.get("numbers") or {}).get(path)
        return None if found is None else float(found[count.take])
    words = (trace.get("values") or {}).get(path)
    if words is None:
        return None
    return 100 * words.get(word, 0) / questions if questions else None


def dataset_key(run: "StoredRun") -> str:
    """Key of a run's data set; its preset for one that is unknown, and for a sample of our own."""
    info = info_of(run.dataset)
    sample = (run.record["data"].get("notes") or {}).get("sample")
    return run.dataset if info is None or sample else info.key
