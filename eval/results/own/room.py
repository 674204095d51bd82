"""Evidence in a context next to what turns hold that a search ranks, in as many tokens: docs/measures.md says how."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eval.commands.rendering.table import Cell, Column, Table, columns
from eval.metrics.budgets import BUDGET_RECALL, BUDGETS
from eval.metrics.evidence import SHOWN_RECALL
from eval.metrics.registry import METRICS
from eval.results.compare.model import interval_text
from eval.results.compare.rows import ComparisonEstimate, estimate
from eval.results.own.report import SystemQuality
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.scoring.inference import Floats

#: Size of a context, which runs of earlier versions have too; four characters are a token of text in Latin script.
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
    return run.columns.column(_CHARACTERS) / _PER_TOKEN


def fitting(runs: Sequence[StoredRun], wide: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the wide runs that some runs can be compared with: on the same data, with all of their questions."""
    return [
        one for one in wide
        if all(run.data_sha256 == one.data_sha256 and run.columns.places.keys() <= one.columns.places.keys()
               for run in runs)
    ]  # fmt: skip


def in_as_many(run: StoredRun, wide: StoredRun) -> StoredRun:
    """Return a run with what another's first memories hold in as many tokens as its own contexts have.

    Between two budgets the share of a question lies on a straight line; a context past the last budget counts as one of
    that budget, which favours the run.
    """
    places = [wide.columns.places[row.question_id] for row in run.rows]
    curves = np.stack([np.zeros(len(places)), *(wide.columns.column(name)[places] for name in _CURVE)], axis=1)
    shares = [np.interp(size, (0, *BUDGETS), curve) for size, curve in zip(_tokens(run), curves, strict=True)]
    known = run.columns.column(SHOWN_RECALL)
    return _with_shares(run, np.where(np.isnan(known), np.nan, shares))


def difference(run: StoredRun, wide: StoredRun) -> StoredRun:
    """Return a run with its share of the evidence in context less the share that :func:`in_as_many` gives."""
    return _with_shares(run, run.columns.column(SHOWN_RECALL) - in_as_many(run, wide).columns.column(SHOWN_RECALL))


def _with_shares(run: StoredRun, shares: Floats) -> StoredRun:
    values = [None if np.isnan(share) else float(share) for share in shares]
    rows = [replace(row, metrics={SHOWN_RECALL: share}) for row, share in zip(run.rows, values, strict=True)]
    return replace(run, rows=tuple(rows))


def room_table(systems: Sequence[SystemQuality], wide: Sequence[StoredRun]) -> Table:
    """Return R@10 and the evidence in context of every system, next to each wide run in as many tokens."""
    shown = [*columns(("system", METRICS["recall@10"].heading)), Column("tokens", digits=0), Column("in context")]
    for one in wide:
        shown += [Column(f"{one.memory}, as many"), Column("less"), Column("95 %")]
    rows: list[tuple[float, list[Cell]]] = []
    for system in systems:
        run, found = system.run, _share(system.run)
        cells: list[Cell] = [system.label, _value(_estimate(run, "recall@10")), _mean(_tokens(run)), _value(found)]
        for one in wide if found else ():
            less = _moved(difference(run, one))
            cells += [_value(_share(in_as_many(run, one))), _value(less), interval_text(less) or None]
        cells += [None] * (len(shown) - len(cells))
        rows.append((-found.value if found else 1.0, cells))
    return Table("In as many tokens", shown, [cells for _, cells in sorted(rows, key=lambda row: row[0])], label="room")


def room_values(run: StoredRun, wide: Sequence[StoredRun]) -> dict[str, object]:
    """Return the same figures of one run, for other programs."""
    found: dict[str, object] = {"context_tokens": _mean(_tokens(run))}
    for one in wide if _share(run) else ():
        found[f"{one.memory}_in_as_many"] = _value(_share(in_as_many(run, one)))
    return found


def _share(run: StoredRun) -> ComparisonEstimate | None:
    return _estimate(run, SHOWN_RECALL)


def _moved(run: StoredRun) -> ComparisonEstimate | None:
    """Return a mean of differences, which may lie below 0."""
    found = _share(run)
    return None if found is None else replace(found, share=False)


def _estimate(run: StoredRun, metric: str) -> ComparisonEstimate | None:
    return estimate(run, metric, run_protocol(run))


def _value(found: ComparisonEstimate | None) -> float | None:
    return None if found is None else found.value


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
