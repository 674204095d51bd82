"""Scores of the runs of a group on their common questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import scale_of
from eval.results.stored_run import StoredRun
from eval.results.tables.run_groups import RunGroup
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import score_name
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
        self._rows: Mapping[int, Sequence[ScoreRow]] = {
            number: _on(runs[number], group.questions) for number in group.members
        }

    @property
    def unanswerable(self) -> bool:
        """Whether some of the questions have no answer."""
        return any(row.kind == ADVERSARIAL for row in next(iter(self._rows.values())))

    def scored(self, metric: str, treatment: Adversarial) -> Scored | None:
        """Return the scores of the runs.

        A run without this score anywhere is left out; a question that one of the others lacks a score for is left out.

        Args:
            metric: a score, a judge's column too.
            treatment: of questions that have no answer.

        Returns:
            ``None`` where nothing is left.
        """
        import numpy as np

        columns = {number: _values(rows, metric, treatment) for number, rows in self._rows.items()}
        kept = tuple(number for number, values in columns.items() if any(value is not None for value in values))
        first = self._rows[kept[0]] if kept else []
        whole = [i for i in range(len(first)) if all(columns[number][i] is not None for number in kept)]
        if not whole:
            return None
        values = np.array([[columns[number][i] for number in kept] for i in whole], dtype=np.float64)
        return Scored(kept, tuple(first[i] for i in whole), scale_of(metric) * values)


def _on(run: StoredRun, questions: Sequence[str]) -> list[ScoreRow]:
    rows = {row.question_id: row for row in run.rows}
    return [rows[question] for question in questions]


def _values(rows: Sequence[ScoreRow], metric: str, treatment: Adversarial) -> list[float | None]:
    return [
        None
        if row.kind == ADVERSARIAL and treatment == "exclude"
        else row.metrics.get(score_name(metric, row.kind, treatment))
        for row in rows
    ]
