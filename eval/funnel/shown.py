"""What runs lack that were scored before it was stored which memories a context shows."""

from dataclasses import replace

from eval.funnel.stages import shows_all_hits
from eval.metrics.updates import IN_CONTEXT
from eval.scoring.rows import ScoreRow
from eval.scoring.shown import SHOWN_CHARS
from eval.tables.stored import StoredRun


def with_shown(run: StoredRun) -> StoredRun:
    """Add to older rows what follows from their other scores, and take away what was wrong in them.

    Where a context shows all that was retrieved, its memories are as long as that. Where a limit kept some out, nobody
    knows which, and whether it shows the newest facts is not known either: earlier versions counted all hits.
    """
    if any(SHOWN_CHARS in row.metrics for row in run.rows):
        return run
    complete = shows_all_hits(run)
    return replace(run, rows=tuple(_completed(row, complete=complete) for row in run.rows))


def _completed(row: ScoreRow, *, complete: bool) -> ScoreRow:
    metrics = dict(row.metrics)
    size = metrics.get("hit_chars")
    if complete and size is not None:
        # hits without a text stand for a conversation that is shown as a whole
        metrics[SHOWN_CHARS] = None if metrics.get("hits") and not size else size
    if not complete and IN_CONTEXT in metrics:
        metrics[IN_CONTEXT] = None
    return replace(row, metrics=metrics)
