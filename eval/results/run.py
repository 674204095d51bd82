"""A stored run as an object: what its files hold, as data frames, and as files of other tools."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.runs.run_json import read_record
from eval.runs.stored import load_answers, load_calls, load_conversations, load_references, load_retrievals
from eval.scoring.rows import load_scores
from memsys.errors import RunDirectoryError

if TYPE_CHECKING:
    from pandas import DataFrame


class Run:
    """One run directory, read when asked.

    Attributes:
        path: the directory.
        record: ``run.json``: configuration, commit, packages, data, model, hardware, status.
    """

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path, self.record = path, record

    @property
    def complete(self) -> bool:
        """Whether every question was answered."""
        return bool(self.record["status"] == "complete")

    def answers(self) -> "DataFrame":
        """Return one row per answered question: prediction, raw reply, options, tokens, seconds."""
        return _frame(load_answers(self.path).values())

    def retrievals(self) -> "DataFrame":
        """Return one row per question: hits, the exact context the reader saw, trace."""
        return _frame(load_retrievals(self.path).values())

    def references(self) -> "DataFrame":
        """Return one row per question: gold answers and evidence."""
        return _frame(load_references(self.path).values())

    def calls(self) -> "DataFrame":
        """Return one row per call of the backbone: phase, role, tokens, seconds, cache hit, malformed, repaired."""
        return _frame(load_calls(self.path))

    def conversations(self) -> "DataFrame":
        """Return one row per conversation: sizes, seconds, statistics of its memory."""
        return _frame(load_conversations(self.path))

    def scores(self) -> "DataFrame":
        """Return one row per question, a column per metric; a value that could not be computed is NaN.

        Raises:
            ScoringError: the run is not scored.
        """
        rows = [{**asdict(row), **row.metrics} for row in load_scores(self.path)]
        return _frame(rows).drop(columns="metrics", errors="ignore")


def load_run(path: str | Path) -> Run:
    """Open a run directory.

    Args:
        path: of the folder that holds ``run.json``.

    Raises:
        RunDirectoryError: there is no run, or its record does not fit this version.
    """
    folder = Path(path)
    record = read_record(folder)
    if record is None:
        raise RunDirectoryError(f"{folder} holds no run.json; name a run directory that `memsys run` wrote")
    return Run(folder, record)


def _frame(rows: Any) -> "DataFrame":
    import pandas as pd

    return pd.DataFrame([row if isinstance(row, dict) else asdict(row) for row in rows])
