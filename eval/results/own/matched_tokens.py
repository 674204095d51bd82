"""Evidence in a context next to what turns hold that a search ranks, in as many tokens: docs/measures.md says how."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval.commands.rendering.table import Cell, Column, Table, columns
from eval.metrics.budgets import BUDGET_RECALL, BUDGETS
from eval.metrics.evidence import SHOWN_RECALL
from eval.metrics.registry import METRICS
from eval.results.compare.model import interval_text
from eval.results.compare.rows import ComparisonEstimate, estimate, value_of
from eval.results.own.memory_quality import SystemQuality
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.scoring.columns import ScoreColumns, columns_of
from eval.scoring.inference import Floats
from eval.scoring.shown import CONTEXT_ESTIMATE

#: Size of a context in rows without the estimate by script: four characters are a token of text in Latin script.
_CHARACTERS, _PER_TOKEN = "context_chars", 4
#: Share of the questions whose memories fill the last budget.
_FILLED = 0.99
_CURVE = tuple(BUDGET_RECALL[budget] for budget in BUDGETS)


def wide_runs(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the runs without a model whose memories fill the largest budget, but for a question in a hundred."""
    return [run for run in runs if run.retrieval_only and run.columns.has(_CURVE[-1]) and _fills(run)]


def _fills(run: StoredRun) -> bool:
    return float((_tokens(run) >= BUDGETS[-1]).mean()) >= _FILLED


def _tokens(run: StoredRun) -> Floats:
    """Return the estimated tokens of each context, shape (rows,)."""
    found = run.columns.column(CONTEXT_ESTIMATE)
    return np.where(np.isnan(found), run.columns.column(_CHARACTERS) / _PER_TOKEN, found)


def fitting(runs: Sequence[StoredRun], wide: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the wide runs that some runs can be compared with: on the same data, with all of their questions."""
    return [
        one for one in wide
        if all(run.data_sha256 == one.data_sha256 and run.columns.places.keys() <= one.columns.places.keys()
               for run in runs)
    ]  # fmt: skip


def in_as_many(run: StoredRun, wide: StoredRun) -> StoredRun:
    """Return a run with what another's first memories hold in as many tokens as its own contexts have.

    Between two budgets the share of a question is interpolated linearly; a context past the last budget counts as one
    of that budget, which favours the run.
    """
    places = [wide.columns.places[row.question_id] for row in run.rows]
    curves = np.stack([np.zeros(len(places)), *(wide.columns.column(name)[places] for name in _CURVE)])
    shares = _between(_tokens(run), curves)
    known = run.columns.column(SHOWN_RECALL)
    return _with_shares(run, np.where(np.isnan(known), np.nan, shares))


def _between(sizes: Floats, curves: Floats) -> Floats:
    """Interpolate shares at sizes in tokens, shape (questions,); ``curves`` has shape (budgets + 1, questions)."""
    grid, each = np.array((0, *BUDGETS), dtype=np.float64), np.arange(len(sizes))
    left = np.clip(np.searchsorted(grid, sizes, side="right") - 1, 0, len(grid) - 2)
    below, above = curves[left, each], curves[left + 1, each]
    slopes = (above - below) / (grid[left + 1] - grid[left])
    return np.where(sizes >= grid[-1], curves[-1], slopes * (sizes - grid[left]) + below)


def difference(run: StoredRun, as_many: StoredRun) -> StoredRun:
    """Return a run with its share of the evidence in context less the one that :func:`in_as_many` gave."""
    return _with_shares(run, run.columns.column(SHOWN_RECALL) - as_many.columns.column(SHOWN_RECALL))


def _with_shares(run: StoredRun, shares: Floats) -> StoredRun:
    return replace(run, rows=columns_of(ScoreColumns(run.rows), {SHOWN_RECALL: shares}))


@dataclass(frozen=True, slots=True)
class Matched:
    """Evidence in a system's contexts next to what searches show in as many tokens.

    Attributes:
        system: the system.
        tokens: mean of its contexts.
        shown: share of the evidence in them, percent; ``None`` where it is not known.
        others: of each search its name, its share in as many tokens, and how much less that is; empty where ``shown``
            is not known.
    """

    system: SystemQuality
    tokens: float | None
    shown: float | None
    others: Sequence[tuple[str, float | None, ComparisonEstimate | None]]


def matched(system: SystemQuality, wide: Sequence[StoredRun]) -> Matched:
    """Compare a system's contexts with each of some wide runs."""
    run, shown = system.run, _share(system.run)
    others = []
    for one in wide if shown is not None else ():
        as_many = in_as_many(run, one)
        others.append((one.memory, _share(as_many), _moved(difference(run, as_many))))
    return Matched(system, _mean(_tokens(run)), shown, others)


def matched_table(systems: Sequence[Matched], wide: Sequence[StoredRun]) -> Table:
    """Return R@10 and the evidence in context of every system, next to each wide run in as many tokens."""
    shown = [*columns(("system", METRICS["recall@10"].heading)), Column("tokens", digits=0), Column("in context")]
    for one in wide:
        shown += [Column(f"{one.memory}, as many"), Column("less"), Column("95 %")]
    rows: list[list[Cell]] = []
    for found in sorted(systems, key=lambda one: 1.0 if one.shown is None else -one.shown):
        run = found.system.run
        recall = value_of(run, "recall@10", run_protocol(run))
        cells: list[Cell] = [found.system.label, recall, found.tokens, found.shown]
        for _, share, less in found.others:
            cells += [share, less.value if less else None, interval_text(less) or None]
        rows.append(cells + [None] * (len(shown) - len(cells)))
    return Table("In as many tokens", shown, rows, label="matched")


def matched_values(found: Matched) -> dict[str, object]:
    """Return the same figures of one run, for other programs."""
    return {"context_tokens": found.tokens, **{f"{name}_in_as_many": share for name, share, _ in found.others}}


def _share(run: StoredRun) -> float | None:
    return value_of(run, SHOWN_RECALL, run_protocol(run))


def _moved(run: StoredRun) -> ComparisonEstimate | None:
    """Return a mean of differences, which may lie below 0."""
    found = estimate(run, SHOWN_RECALL, run_protocol(run))
    return None if found is None else replace(found, share=False)


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
