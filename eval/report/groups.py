"""Runs that can be compared: same part of the same data, same backbone, and their common questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.loaders.kinds import ADVERSARIAL
from eval.metrics.registry import METRICS
from eval.scoring.aggregate import ABSTENTION
from eval.scoring.inference import Floats
from eval.scoring.protocols import Adversarial
from eval.scoring.rows import ScoreRow
from eval.tables.stored import StoredRun


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs on the same questions.

    Attributes:
        systems: numbers of the runs that are ranked.
        references: numbers of the runs that are shown as lines.
        questions: ids that every one of them answered, sorted.
        asked: most questions that any one of them answered.
    """

    systems: tuple[int, ...]
    references: tuple[int, ...]
    questions: tuple[str, ...]
    asked: int

    @property
    def members(self) -> tuple[int, ...]:
        """All runs, ranked ones first."""
        return self.systems + self.references


def find_groups(runs: Sequence[StoredRun]) -> list[RunGroup]:
    """Sort runs into groups; floors join each group on their data file that they cover.

    Returns:
        Groups, those with most systems and questions first.
    """
    members: dict[tuple[object, ...], list[int]] = {}
    floors = [number for number, run in enumerate(runs) if run.floor]
    for number, run in enumerate(runs):
        if not run.floor:
            members.setdefault(_scope(run), []).append(number)
    found = [_group(runs, numbers, floors) for numbers in members.values()]
    return sorted(found, key=lambda group: (_only_retrieves(runs, group), -len(group.systems), -len(group.questions)))


def _only_retrieves(runs: Sequence[StoredRun], group: RunGroup) -> bool:
    return all(runs[number].retrieval_only for number in group.members)


def _scope(run: StoredRun) -> tuple[object, ...]:
    """What must be equal: the data file, how many turns of how many conversations were written, the backbone."""
    data = run.record["data"]
    return data.get("sha256"), data.get("turns"), data.get("conversations"), run.backbone


def _group(runs: Sequence[StoredRun], numbers: Sequence[int], floors: Sequence[int]) -> RunGroup:
    answered = {number: {row.question_id for row in runs[number].rows} for number in (*numbers, *floors)}
    common = frozenset.intersection(*(frozenset(answered[number]) for number in numbers))
    checksum = runs[numbers[0]].record["data"].get("sha256")
    joining = [
        number
        for number in floors
        if common and runs[number].record["data"].get("sha256") == checksum and common <= answered[number]
    ]
    if runs[numbers[0]].retrieval_only:
        joining = []
    return RunGroup(
        systems=tuple(number for number in numbers if not runs[number].reference),
        references=(*(number for number in numbers if runs[number].reference), *joining),
        questions=tuple(sorted(common)),
        asked=max(len(answered[number]) for number in numbers),
    )


def rows_of(run: StoredRun, questions: Sequence[str]) -> list[ScoreRow]:
    """A run's rows on some questions, in their order."""
    rows: Mapping[str, ScoreRow] = {row.question_id: row for row in run.rows}
    return [rows[question] for question in questions]


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


def scored(runs: Sequence[StoredRun], group: RunGroup, metric: str, five: Adversarial) -> Scored | None:
    """Scores of a group's runs on its common questions.

    A run without this score anywhere is left out; a question that one of the others lacks a score for is left out.

    Args:
        runs: all runs.
        group: which of them.
        metric: a score, a judge's column too.
        five: treatment of category 5.

    Returns:
        ``None`` where nothing is left.
    """
    import numpy as np

    columns = {number: _values(rows_of(runs[number], group.questions), metric, five) for number in group.members}
    kept = tuple(number for number, values in columns.items() if any(value is not None for value in values))
    first = rows_of(runs[kept[0]], group.questions) if kept else []
    whole = [i for i in range(len(first)) if all(columns[number][i] is not None for number in kept)]
    if not whole:
        return None
    values = np.array([[columns[number][i] for number in kept] for i in whole], dtype=np.float64)
    return Scored(kept, tuple(first[i] for i in whole), 100 * values)


def _values(rows: Sequence[ScoreRow], metric: str, five: Adversarial) -> list[float | None]:
    retrieval = metric in METRICS and "retrievals" in METRICS[metric].needs
    return [
        None
        if row.kind == ADVERSARIAL and five == "exclude"
        else row.metrics.get(ABSTENTION if _declines(row, metric, five) and not retrieval else metric)
        for row in rows
    ]


def _declines(row: ScoreRow, metric: str, five: Adversarial) -> bool:
    """Whether declining is the right answer; a judge's verdict stays what it is."""
    return row.kind == ADVERSARIAL and five == "abstain" and metric in METRICS
