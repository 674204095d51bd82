"""Rows that were scored before it was stored which memories a context shows: what is known of them all the same."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eval.metrics.evidence import SHOWN_RECALL
from eval.metrics.updates import IN_CONTEXT
from eval.results.papers.expectations import method_counts
from eval.runs.records import ScoreRow
from eval.scoring.shown import LEFT_OUT, SHOWN_CHARS


def with_shown(rows: Sequence[ScoreRow], summary: Mapping[str, Any], memory: Mapping[str, Any]) -> Sequence[ScoreRow]:
    """Add to older rows what follows from their other scores, and take away what was wrong in them.

    Where a context shows all that was retrieved, its memories are as long as that. Where a limit kept some out, nobody
    knows which, and whether it shows the newest facts is not known either: earlier versions counted all hits. They
    also counted the memories that a context was written from: of one shorter than its memories it is not known which
    turns are in it.

    Args:
        rows: of one run.
        summary: its ``summary.json``.
        memory: its resolved memory config.
    """
    if not any(SHOWN_CHARS in row.metrics for row in rows):
        complete = shows_all_hits(summary, memory)
        rows = [_completed(row, complete=complete) for row in rows]
    return [_without_unseen(row) for row in rows]


def shows_all_hits(summary: Mapping[str, Any], memory: Mapping[str, Any]) -> bool:
    """Return whether the contexts of a run show all that was retrieved, as far as its summary says.

    Asked of runs that were scored before it was stored which hits a context shows. Where a system counts what had no
    room and the summary does not have the count, it is not known.
    """
    numbers = (summary.get("trace") or {}).get("numbers") or {}
    counts = [numbers[name] for name in LEFT_OUT if name in numbers]
    if counts:
        return not any(count["max"] for count in counts)
    return all(count.statistic not in LEFT_OUT for count in method_counts(memory))


def _completed(row: ScoreRow, *, complete: bool) -> ScoreRow:
    metrics = dict(row.metrics)
    size = metrics.get("hit_chars")
    if complete and size is not None:
        # hits without a text stand for a conversation that is shown as a whole
        metrics[SHOWN_CHARS] = None if metrics.get("hits") and not size else size
    if not complete and IN_CONTEXT in metrics:
        metrics[IN_CONTEXT] = None
    return replace(row, metrics=metrics)


def _without_unseen(row: ScoreRow) -> ScoreRow:
    """Take away what is said of memories in a context that is too short to hold them."""
    shown, context = row.metrics.get(SHOWN_CHARS), row.metrics.get("context_chars")
    if not shown or not context or shown <= context:
        return row
    unknown = {name: None for name in (SHOWN_CHARS, SHOWN_RECALL, IN_CONTEXT) if name in row.metrics}
    return replace(row, metrics={**row.metrics, SHOWN_RECALL: None, **unknown})
