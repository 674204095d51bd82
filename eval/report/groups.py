"""Scores of the runs of a group on their common questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.metrics.registry import scale_of
from eval.results.stored_run import StoredRun
from eval.results.tables.run_groups import RunGroup
from eval.runs.records import ScoreRow
from eval.scoring.columns import ScoreColumns
from eval.scoring.inference import Floats
from eval.scoring.protocols import Adversarial


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of several runs where all of them have one.

    Attributes:
        runs: numbers of the runs, one column each.
        rows: of the first run, for ids, conversations and categories.
        values: percent, shape (questions, runs).
    """

    runs: tuple[int, ...]
    rows: tuple[ScoreRow, ...]
    values: Floats


class GroupRows:
    """Rows of a group's runs on its common questions, in the order of the questions.

    Args:
        runs: all runs.
        group: which of them.
    """

    def __init__(self, runs: Sequence[StoredRun], group: RunGroup) -> None:
        self._rows: Mapping[int, ScoreColumns] = {
            number: _on(runs[number], group.questions) for number in group.members
        }

    @property
    def unanswerable(self) -> bool:
        """Whether some of the questions have no answer."""
        return bool(next(iter(self._rows.values())).adversarial.any())

    def scored(self, metric: str, treatment: Adversarial) -> Scored | None:
        """Return the scores of the runs.

        A run without this score anywhere is left out; a question that one of the others lacks a score for is left out.

        Args:
            metric: a score, a judge's column too.
            treatment: of questions that have no answer.

        Returns:
            ``None`` where nothing is left.
        """
        found = {number: _values(rows, metric, treatment) for number, rows in self._rows.items()}
        kept = tuple(number for number, values in found.items() if not np.isnan(values).all())
        if not kept:
            return None
        values = np.stack([found[number] for number in kept], axis=1)
        whole = np.flatnonzero(~np.isnan(values).any(axis=1))
        if not len(whole):
            return None
        return Scored(kept, self._rows[kept[0]].at(whole), scale_of(metric) * values[whole])


def _on(run: StoredRun, questions: Sequence[str]) -> ScoreColumns:
    places = run.columns.places
    return run.columns.at(np.array([places[question] for question in questions], dtype=np.int64))


def _values(rows: ScoreColumns, metric: str, treatment: Adversarial) -> Floats:
    values = rows.scores(metric, treatment)
    return np.where(rows.adversarial, np.nan, values) if treatment == "exclude" else values
