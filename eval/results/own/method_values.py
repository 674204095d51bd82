"""Counts of a method as a run has them, and whether they fit what its paper states."""

from collections.abc import Mapping
from typing import Any

from eval.loaders.registry import info_of
from eval.results.papers.expectations import ExpectedValue, MethodCount
from eval.results.stored_run import StoredRun

#: Stands in ``of`` for the turns ingested.
_TURNS = "turns"


def fit(expected: ExpectedValue | None, value: float | None, run: StoredRun) -> bool | None:
    """Return whether a value of a run fits what is stated.

    Returns:
        ``None`` where there is nothing to compare it with: nothing measured or stated, or a number that is stated for
        whole conversations next to a run on their first sessions.
    """
    if expected is None or value is None or not expected.bounded:
        return None
    if expected.number is not None and (run.record["config"].get("dataset") or {}).get("limit_sessions"):
        return None
    return expected.fits(value)


def measured(count: MethodCount, run: StoredRun) -> float | None:
    """Return the value of a count in a run; ``None`` where the run does not have it."""
    if count.where == "trace":
        return _traced(count, run.summary.get("trace") or {}, run.asked)
    statistics = (run.summary.get("memory") or {}).get("statistics") or {}
    found = statistics.get(count.statistic)
    if found is None or not count.of:
        return None if found is None else float(found[count.take])
    total = sum(_total(name, run, statistics) for name in count.of)
    return 100 * float(found["sum"]) / total if total else None


def _total(name: str, run: StoredRun, statistics: Mapping[str, Any]) -> float:
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


def dataset_key(run: StoredRun) -> str:
    """Return the key of a run's data set; its preset for one that is unknown, and for a sample of our own."""
    info = info_of(run.dataset)
    sample = (run.record["data"].get("notes") or {}).get("sample")
    return run.dataset if info is None or sample else info.key
