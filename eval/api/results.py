"""Stored results as one data frame."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.results.tables.stored import StoredRun, read_runs
from eval.runs.folders import stored_folders

if TYPE_CHECKING:
    from pandas import DataFrame


def load_results(*places: str | Path) -> "DataFrame":
    """Load the scores of every question of complete runs.

    Args:
        places: run directories, exported runs, or folders of them; without any, ``results/runs`` and
            ``results/summaries``.

    Returns:
        One row for each question of each run: ``run``, ``system``, ``backbone``, ``dataset``, ``prompts``, ``seed``,
        ``question_id``, ``conversation_id``, ``category``, ``kind``, and a column for each metric (0 to 1, NaN where
        there is nothing to score).

    Raises:
        RunDirectoryError: a place does not exist, or a file is damaged.
    """
    import pandas as pd

    runs, _ = read_runs([Path(place) for place in places] or stored_folders())
    return pd.DataFrame([row for run in runs for row in _rows(run)])


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
    about = {
        "run": run.run_id,
        "system": run.memory,
        "backbone": run.backbone,
        "dataset": run.dataset,
        "prompts": (run.record["config"].get("prompts") or {}).get("source", "ours"),
        "seed": run.record.get("seed"),
    }
    for row in run.rows:
        question = {"question_id": row.question_id, "conversation_id": row.conversation_id}
        yield {**about, **question, "category": row.category, "kind": row.kind, **row.metrics}
