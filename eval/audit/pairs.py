"""Every two runs on the questions that both answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eval.audit.leaderboard import Row
from eval.audit.readings import JUDGE, RunReading, applies, values
from eval.audit.scores import AnsweredQuestion, ScoredRun
from eval.scoring.inference import Floats, Ints, MeanRule, MetricScores
from eval.scoring.paired import compare_paired

#: Questions that two runs must share for a paired test.
LEAST_SHARED = 100


def paired_tests(runs: Sequence[ScoredRun], metric: str) -> list[Row]:
    """Test every two runs on their common questions under one metric; verdicts only of one publisher's judge.

    The tests explore and are not corrected, as the name of their column says. Holm's correction over a thousand pairs,
    with ten conversations, would confirm nothing: the least p of so few is 2 in 1,024.
    """
    reading = RunReading(metric, "printed", "question")
    scored = {run.entry.name: list(values(run.answers, reading)) for run in runs if applies(run, reading)}
    aligned, publishers = _Aligned.of(scored), {run.entry.name: run.entry.repository for run in runs}
    found: list[Row] = []
    for one, two in combinations(sorted(scored), 2):
        if metric == JUDGE and publishers[one] != publishers[two]:
            continue  # two judges: what differs need not be the answers
        differences = aligned.differences(one, two)
        if len(differences.values) < LEAST_SHARED:
            continue
        result = compare_paired(differences, MeanRule())
        found.append(
            {
                "metric": metric,
                "first": one,
                "second": two,
                "questions": result.questions,
                "difference": 100 * result.difference,
                "low": None if result.interval is None else 100 * result.interval.low,
                "high": None if result.interval is None else 100 * result.interval.high,
                "interval_by": None if result.interval is None else result.interval.by,
                "p_uncorrected": result.p_value,
                "p_error": result.p_error,
                "wins": result.wins,
                "ties": result.ties,
                "losses": result.losses,
            }
        )
    return found


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Scores of several runs over all questions that any of them answered, in the order of the questions' ids.

    Attributes:
        places: conversation and category of each question.
        values: run -> its scores, NaN where it has none.
        kept: conversations and categories of the questions that two runs share: most pairs share the same ones.
    """

    places: Sequence[tuple[str, int]]
    values: Mapping[str, Floats]
    kept: dict[bytes, tuple[tuple[str, ...], Ints]]

    @classmethod
    def of(cls, scored: Mapping[str, Sequence[tuple[AnsweredQuestion, float]]]) -> "_Aligned":
        asked = {answer.question_id: answer for own in scored.values() for answer, _ in own}
        numbers = {name: number for number, name in enumerate(sorted(asked))}
        found = {name: np.full(len(numbers), np.nan) for name in scored}
        for name, own in scored.items():
            found[name][[numbers[answer.question_id] for answer, _ in own]] = [value for _, value in own]
        return cls([(asked[name].conversation_id, asked[name].category) for name in numbers], found, {})

    def differences(self, one: str, two: str) -> MetricScores:
        """Return one run's scores minus another's on their common questions."""
        gaps = self.values[one] - self.values[two]
        shared = np.flatnonzero(~np.isnan(gaps))
        key = shared.tobytes()
        if key not in self.kept:
            places = [self.places[place] for place in shared.tolist()]
            self.kept[key] = (
                tuple(name for name, _ in places),
                np.array([number for _, number in places], dtype=np.int64),
            )
        return MetricScores(gaps[shared], *self.kept[key])
