"""Stored runs under a view of disputed labels (:mod:`eval.scoring.labels`)."""

from collections.abc import Sequence
from dataclasses import replace

from eval.results.stored_run import StoredRun
from eval.scoring.labels import VIEW_TEXT, LabelView, check_view, under
from memsys.errors import ScoringError


def under_labels(run: StoredRun, view: LabelView) -> StoredRun:
    """Return a run under a view; the run itself where the view changes nothing.

    Raises:
        ConfigError: no such view.
        ScoringError: ``corrected`` is asked of a run that was scored without the corrections.
    """
    rows = tuple(under(run.rows, view, run.run_id, run.data_sha256))
    return run if rows == run.rows else replace(run, rows=rows, labels=view)


def views(runs: Sequence[StoredRun]) -> list[str]:
    """Return the note on runs whose labels are not as printed; empty where all are."""
    return [f"labels: {VIEW_TEXT[name]}" for name in dict.fromkeys(run.labels for run in runs) if name != "printed"]


def all_under_labels(runs: Sequence[StoredRun], view: LabelView) -> tuple[list[StoredRun], list[str]]:
    """Return the runs under a view, and why others have none: a summary has no answers to score again.

    Raises:
        ConfigError: no such view.
    """
    check_view(view)
    found, reasons = [], []
    for run in runs:
        try:
            found.append(under_labels(run, view))
        except ScoringError as error:
            reasons.append(str(error))
    return found, reasons
