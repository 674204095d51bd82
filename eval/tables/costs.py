"""What others print of the costs of memory systems, beside what our ledgers count: ``results/printed/costs.yaml``.

Our runs rarely have the printed work's size, so that costs are set against it: calls and tokens of construction per
turn written, tokens of reading per question, and what the printed work would take at our rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.cli.escaping import markdown_cell, markdown_row
from eval.configs.presets import read_settings
from eval.tables.stored import StoredRun
from eval.tables.variants import label_of
from memsys.assets.paths import shipped
from memsys.errors import ConfigError
from memsys.rows import RowError, record_from

FILE = shipped("results", "printed") / "costs.yaml"
COSTS = "costs.md"
_CONSTRUCTION = ("prepare", "write", "consolidate")
_HEADS = (
    "system", "backbone", "calls printed", "per turn", "ours per turn", "ours for this work", "write tokens per turn",
    "ours", "read tokens per question", "ours", "write hours", "our run",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CostWork:
    """What was done: data sets on which our runs do it, turns written and questions asked."""

    title: str
    datasets: Sequence[str]
    turns: int
    questions: int


@dataclass(frozen=True, slots=True)
class CostSource:
    """Who printed a cost; ``commit``: of the file, where it is known."""

    title: str
    url: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class PrintedCost:
    """One printed row; thousands of tokens and seconds, ``None`` where nothing is printed."""

    system: str
    memory: str | None
    work: str
    source: str
    backbone: str
    calls: int | None
    write_ktokens: float | None
    read_ktokens: float | None
    write_s: float | None
    read_s: float | None


@dataclass(frozen=True, slots=True)
class CostRegistry:
    """All printed costs."""

    works: Mapping[str, CostWork]
    sources: Mapping[str, CostSource]
    rows: Sequence[PrintedCost]


def load_costs(path: Path = FILE) -> CostRegistry:
    """Read the printed costs.

    Raises:
        ConfigError: a field is missing or wrong, or a row names a work or a source that is not there.
    """
    try:
        found = record_from(CostRegistry, read_settings(path))
    except RowError as error:
        raise ConfigError(f"{path}: {error}") from error
    for number, row in enumerate(found.rows):
        for key, name, known in (("work", row.work, found.works), ("source", row.source, found.sources)):
            if name not in known:
                raise ConfigError(f"{path}: rows[{number}].{key}={name!r} is none of {', '.join(known)}")
    return found


@dataclass(frozen=True, slots=True)
class CostRates:
    """What a run of ours took: calls asked and tokens per turn written, tokens per question read."""

    run: str
    calls: float
    write_tokens: float
    read_tokens: float


def turns_written(summary: Mapping[str, Any]) -> float:
    """Turns that a run's memories were written from; 0 where they were not counted."""
    sizes = (summary.get("memory") or {}).get("sizes") or {}
    return float((sizes.get("turns") or {}).get("sum", 0.0))


def construction_totals(summary: Mapping[str, Any]) -> list[Mapping[str, int]]:
    """Totals of a run's ledger in each phase that builds a memory; empty for a run without ledger."""
    phases = (summary.get("calls") or {}).get("by_phase") or {}
    return [phases[name]["total"] for name in _CONSTRUCTION if name in phases]


def write_tokens_per_turn(summary: Mapping[str, Any]) -> float | None:
    """Prompt and completion tokens of building a memory, per turn written; ``None`` where no turns were counted.

    Further attempts after malformed replies, and replies from the cache, are included.
    """
    turns = turns_written(summary)
    if not turns:
        return None
    totals = construction_totals(summary)
    return sum(total["prompt_tokens"] + total["completion_tokens"] for total in totals) / turns


def cost_rates(run: StoredRun) -> CostRates | None:
    """Rates from a run's summary; ``None`` for a run without ledger.

    Calls leave out the further attempts after malformed replies, tokens have them. Replies from the cache count: they
    are what the method costs, whoever paid for them first.
    """
    turns, write_tokens = turns_written(run.summary), write_tokens_per_turn(run.summary)
    read = (run.summary.get("cost") or {}).get("read_per_question")
    if write_tokens is None or not (run.summary.get("calls") or {}).get("by_phase") or not read:
        return None
    return CostRates(
        run=_named(run),
        calls=sum(total["calls"] - total["second_attempts"] for total in construction_totals(run.summary)) / turns,
        write_tokens=write_tokens,
        read_tokens=read["prompt_tokens"] + read["completion_tokens"],
    )


def _named(run: StoredRun) -> str:
    """The run by its memory, how that differs from its preset, its backbone, and what was asked."""
    conversations = len(run.conversations)
    extent = f"{len(run.rows)} questions on {conversations} conversation{'' if conversations == 1 else 's'}"
    return f"{label_of(run.memory, run.record)}, {run.backbone}, {extent}"


def render_costs(registry: CostRegistry, runs: Sequence[StoredRun]) -> str:
    """The page: a table for each printed work, and the sources."""
    lines = [
        "# Printed costs",
        "",
        "Calls and tokens that others print, per turn written and per question asked, beside those of our runs of the "
        "same method. Calls are those of construction, ours without further attempts after malformed replies. Calls "
        "can be compared; ours are of all questions asked, category 5 included where it was asked; "
        "tokens depend on the length of the backbone's replies and of the prompts, hours on the machine.",
        "",
    ]
    for name, work in registry.works.items():
        rows = [cells for row in registry.rows if row.work == name for cells in _rows(row, work, runs)]
        align = ["---" if heading in ("system", "backbone", "our run") else "---:" for heading in _HEADS]
        lines += [f"## {work.title}: {work.turns:,} turns, {work.questions:,} questions", ""]
        lines += [markdown_row(_HEADS), markdown_row(align)]
        lines += [markdown_row([markdown_cell(cell) for cell in cells]) for cells in rows]
        lines.append("")
    lines += ["Sources:", ""]
    for source in registry.sources.values():
        at = f", commit {source.commit[:12]}" if source.commit else ""
        lines.append(f"- {markdown_cell(source.title)} {source.url}{at}")
    return "\n".join([*lines, "", "Written by `python -m eval.tables`.", ""])


def _rows(row: PrintedCost, work: CostWork, runs: Sequence[StoredRun]) -> list[list[str]]:
    """One line for each run of ours, or one without."""
    same = [run for run in runs if _does(run, row, work)]
    rates = [found for run in same if (found := cost_rates(run)) is not None]
    return [_line(row, work, one) for one in rates] or [_line(row, work, None)]


def _does(run: StoredRun, row: PrintedCost, work: CostWork) -> bool:
    family = row.memory is not None and (run.memory == row.memory or run.memory.startswith(f"{row.memory}_"))
    return family and run.dataset in work.datasets


def _line(row: PrintedCost, work: CostWork, ours: CostRates | None) -> list[str]:
    return [
        row.system,
        row.backbone,
        _number(row.calls, 0),
        _number(row.calls, 2, work.turns),
        _number(ours.calls if ours else None, 2),
        _number(ours.calls * work.turns if ours else None, 0),
        _number(row.write_ktokens and 1000 * row.write_ktokens, 0, work.turns),
        _number(ours.write_tokens if ours else None, 0),
        _number(row.read_ktokens and 1000 * row.read_ktokens, 0, work.questions),
        _number(ours.read_tokens if ours else None, 0),
        _number(row.write_s, 1, 3600),
        ours.run if ours else "none yet" if row.memory else "not a system of ours",
    ]


def _number(value: float | None, digits: int, per: float = 1) -> str:
    return "" if value is None else f"{value / per:,.{digits}f}"
