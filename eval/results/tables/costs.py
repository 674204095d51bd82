"""Costs of memory systems: printed by others (``results/printed/costs.yaml``), and counted by our ledgers.

Our runs rarely have the printed work's size or settings, so that each is counted by itself: calls and tokens of
construction per turn written, tokens per question, hours. :mod:`eval.results.tables.cost_page` sets them next to each
other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from eval.config.presets import MEMORY, preset_names, read_settings
from eval.config.prices import Price
from eval.results.stored_run import StoredRun
from eval.scoring.call_costs import READ_PHASES
from memsys.assets.paths import shipped
from memsys.errors import ConfigError
from memsys.rows import RowError, record_from

FILE = shipped("results", "printed") / "costs.yaml"
COSTS = "costs.md"
_CONSTRUCTION = ("prepare", "write", "consolidate")
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class CostWork:
    """Work of a row: data sets on which our runs do it, its sizes; ``turns`` is ``None`` where it is not printed."""

    title: str
    datasets: Sequence[str]
    conversations: int
    turns: int | None
    questions: int


@dataclass(frozen=True, slots=True)
class CostSource:
    """Source of a printed cost; ``commit``: of the file, where it is known."""

    title: str
    url: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class PrintedCost:
    """One printed row; thousands of tokens and seconds, ``None`` where nothing is printed.

    Attributes:
        system: as printed.
        method: key of the presets that are the same method; ``None`` if there are none.
        work: key of what was done.
        source: key of who printed it.
        settings: as printed.
        backbone: as printed.
        calls: of construction.
        write_ktokens: of construction.
        read_ktokens: of the answers.
        total_ktokens: of both, where they are not given separately.
        write_s: of construction.
        read_s: of the answers.
        why: the reason where there is no method.
        note: what should be known of the figures.
    """

    system: str
    method: str | None
    work: str
    source: str
    settings: str | None
    backbone: str
    calls: int | None
    write_ktokens: float | None = None
    read_ktokens: float | None = None
    total_ktokens: float | None = None
    write_s: float | None = None
    read_s: float | None = None
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CostRegistry:
    """All printed costs; ``methods``: names of presets by method, that with its full form first."""

    works: Mapping[str, CostWork]
    methods: Mapping[str, Sequence[str]]
    sources: Mapping[str, CostSource]
    rows: Sequence[PrintedCost]


def load_costs(path: Path = FILE) -> CostRegistry:
    """Read the printed costs.

    Raises:
        ConfigError: a field is missing or wrong, a row names a work, a source or a method that is not there, or a row
            without a method does not say why; or a method names a preset that is not there.
    """
    try:
        found = record_from(CostRegistry, read_settings(path))
    except RowError as error:
        raise ConfigError(f"{path}: {error}") from error
    for number, row in enumerate(found.rows):
        _check_row(f"{path}: rows[{number}]", row, found)
    known = preset_names(MEMORY)
    for method, names in found.methods.items():
        if unknown := [name for name in names if name not in known]:
            raise ConfigError(f"{path}: methods.{method}: there is no preset {unknown[0]!r}")
    return found


def _check_row(where: str, row: PrintedCost, registry: CostRegistry) -> None:
    named = [("work", row.work, registry.works), ("source", row.source, registry.sources)]
    if row.method is not None:
        named.append(("method", row.method, registry.methods))
    for key, name, known in named:
        if name not in known:
            raise ConfigError(f"{where}.{key}={name!r} is not one of {', '.join(known)}")
    if row.method is None and not row.why:
        raise ConfigError(f"{where}.why is missing: a row without a method must say why")


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs of some work, printed or measured; ``None`` where unknown.

    Attributes:
        turns: written.
        questions: asked.
        calls: of construction.
        write_tokens: of construction.
        read_tokens: of the answers.
        all_tokens: of both.
        write_hours: of construction.
        read_hours: of the answers.
    """

    turns: float | None
    questions: int
    calls: int | None
    write_tokens: float | None
    read_tokens: float | None
    all_tokens: float | None
    write_hours: float | None
    read_hours: float | None

    @property
    def hours(self) -> float | None:
        """Of construction and answers together; of the answers alone where there is no construction."""
        return self.read_hours if self.write_tokens is None else added(self.write_hours, self.read_hours)


def added(one: float | None, two: float | None) -> float | None:
    """Return the sum of two figures; ``None`` where one of them is not known."""
    return None if one is None or two is None else one + two


def printed_cost(row: PrintedCost, work: CostWork) -> Cost:
    """Return a printed row in tokens and hours. What nothing was printed of but the answers has no construction."""
    write, read = _tokens(row.write_ktokens), _tokens(row.read_ktokens)
    answers_alone = row.write_ktokens is None and row.read_ktokens is not None
    return Cost(
        turns=work.turns,
        questions=work.questions,
        calls=row.calls,
        write_tokens=write,
        read_tokens=read,
        all_tokens=_tokens(row.total_ktokens) if row.total_ktokens else read if answers_alone else added(write, read),
        write_hours=_hours(row.write_s),
        read_hours=_hours(row.read_s),
    )


def _tokens(thousands: float | None) -> float | None:
    return None if thousands is None else 1000 * thousands


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / _SECONDS_PER_HOUR


def turns_written(summary: Mapping[str, Any]) -> float:
    """Return the turns that a run's memories were written from; 0 where they were not counted."""
    sizes = (summary.get("memory") or {}).get("sizes") or {}
    return float((sizes.get("turns") or {}).get("sum", 0.0))


def construction_totals(summary: Mapping[str, Any]) -> list[Mapping[str, int]]:
    """Return the totals of a run's ledger in each phase that builds a memory; empty for a run without ledger."""
    phases = (summary.get("calls") or {}).get("by_phase") or {}
    return [phases[name]["total"] for name in _CONSTRUCTION if name in phases]


def write_tokens_per_turn(summary: Mapping[str, Any]) -> float | None:
    """Return prompt and completion tokens of building a memory per turn; ``None`` where no turns were counted.

    Further attempts after malformed replies, and replies from the cache, are included.
    """
    turns = turns_written(summary)
    if not turns:
        return None
    totals = construction_totals(summary)
    return sum(total["prompt_tokens"] + total["completion_tokens"] for total in totals) / turns


def measured_cost(run: StoredRun) -> Cost | None:
    """Return a run's costs from its summary; ``None`` for a run without ledger.

    Calls leave out the further attempts after malformed replies, tokens have them. Replies from the cache count: they
    are what the method costs, no matter which run paid for them first. They took no time, so that there are no hours
    with them.
    """
    turns, write_per_turn = turns_written(run.summary), write_tokens_per_turn(run.summary)
    read = (run.summary.get("cost") or {}).get("read_per_question")
    if write_per_turn is None or not (run.summary.get("calls") or {}).get("by_phase") or not read:
        return None
    totals = construction_totals(run.summary)
    write_tokens = write_per_turn * turns
    read_tokens = (read["prompt_tokens"] + read["completion_tokens"]) * run.asked
    return Cost(
        turns=turns,
        questions=run.asked,
        calls=sum(total["calls"] - total["second_attempts"] for total in totals),
        write_tokens=write_tokens,
        read_tokens=read_tokens,
        all_tokens=write_tokens + read_tokens,
        write_hours=_call_hours(totals),
        read_hours=_timed_hours(run.summary, run.asked) or _call_hours(read_totals(run.summary)),
    )


def read_totals(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the totals of a run's ledger in each phase of a question."""
    phases = (summary.get("calls") or {}).get("by_phase") or {}
    return [phases[name]["total"] for name in READ_PHASES if name in phases]


def dollars_of(price: Price, totals: Sequence[Mapping[str, Any]]) -> float:
    """Return the dollars of totals of a ledger: tokens from the provider's cache and of batches at their own price.

    Replies from our own cache count as if they were asked for: they are what the method costs.
    """
    every, later = _tokens_of(totals), _tokens_of([total["batched"] for total in totals if total.get("batched")])
    return price.of_both([one - other for one, other in zip(every, later, strict=True)], later)


def _tokens_of(totals: Sequence[Mapping[str, Any]]) -> list[int]:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    return [sum(total.get(name) or 0 for total in totals) for name in names]


def _call_hours(totals: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the service time of calls, added up; ``None`` where a reply came from the cache."""
    if any(total["cache_hits"] for total in totals):
        return None
    return fsum(total["fresh_seconds"] for total in totals) / _SECONDS_PER_HOUR


def _timed_hours(summary: Mapping[str, Any], questions: int) -> float | None:
    """Return the hours of all questions where they were timed one at a time, retrieval included."""
    clock = (summary.get("latency") or {}).get("end_to_end_ms")
    return None if clock is None else float(clock["mean"]) / 1000 * questions / _SECONDS_PER_HOUR
