"""Readings: a metric or judge, a view of the labels, and which categories count how; and a run's mean under one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from eval.audit.config import AuditConfig
from eval.audit.scores import AnsweredQuestion, ScoredRun
from eval.metrics.locomo import CATEGORY_5
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import Interval, MeanRule, MetricScores
from eval.scoring.labels import LabelView, doubtful_adversarial

#: ``question``: categories 1 to 4, every question alike (Mem0, xMemory); ``category``: mean of their four means (SAGE);
#: ``fooled`` and ``abstain``: category 5 too, scored against the false answer (A-Mem, CLAG) or by abstention (LoCoMo).
Counting = Literal["question", "category", "fooled", "abstain"]
COUNTING_TEXT = {
    "question": "1-4, question mean",
    "category": "1-4, category mean",
    "fooled": "1-5, category 5 against its false answer",
    "abstain": "1-5, category 5 by abstention",
}
JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class RunReading:
    """One way to read a run; ``metric`` is ``judge`` for the verdicts in its file."""

    metric: str
    labels: LabelView
    counting: Counting


@dataclass(frozen=True, slots=True)
class ReadingEstimate:
    """A mean in percent with its interval over conversations, and how many questions it is of."""

    value: float
    interval: Interval | None
    questions: int


def all_readings(config: AuditConfig) -> list[RunReading]:
    """Return every metric under every view and counting; verdicts cannot be corrected, only masked."""
    found = [
        RunReading(metric, labels, counting)
        for metric in (*config.metrics, JUDGE)
        for labels in get_args(LabelView)
        for counting in get_args(Counting)
    ]
    return [one for one in found if _says_something(one)]


def _says_something(reading: RunReading) -> bool:
    if reading.labels == "adversarial_masked" and reading.counting in _JUDGED:
        return False  # no question of category 5 counts there
    return reading.metric != JUDGE or (reading.labels != "corrected" and reading.counting in _JUDGED)


_JUDGED = ("question", "category")


def values(answers: Iterable[AnsweredQuestion], reading: RunReading) -> Iterator[tuple[AnsweredQuestion, float]]:
    """Yield the answers that count under a reading, with their scores."""
    for answer in answers:
        if _left_out(answer, reading.labels):
            continue
        if answer.category == CATEGORY_5 and reading.counting in _JUDGED:
            continue
        value = _value(answer, reading)
        if value is not None:
            yield answer, value


def _left_out(answer: AnsweredQuestion, labels: LabelView) -> bool:
    if labels == "adversarial_masked":
        return answer.category == CATEGORY_5 and answer.question_id in doubtful_adversarial()
    return labels == "masked" and answer.doubtful


def _value(answer: AnsweredQuestion, reading: RunReading) -> float | None:
    if reading.metric == JUDGE:
        known = list(answer.verdicts.values())
        return known[0] if known else None
    if answer.category == CATEGORY_5 and reading.counting == "abstain":
        return float(answer.abstained)
    if reading.labels == "corrected" and reading.metric in answer.corrected:
        return answer.corrected[reading.metric]
    return answer.metrics.get(reading.metric)


def scores(answers: Iterable[AnsweredQuestion], reading: RunReading) -> tuple[MetricScores, MeanRule]:
    """Return the scores by question and how they are averaged."""
    found = MetricScores.of((value, one.conversation_id, one.category) for one, value in values(answers, reading))
    strata = sorted({int(stratum) for stratum in found.strata})
    return found, MeanRule(tuple((one, 1.0) for one in strata)) if reading.counting == "category" else MeanRule()


def applies(run: ScoredRun, reading: RunReading) -> bool:
    """Return whether a reading of a run differs from all others."""
    categories = {answer.category for answer in run.answers}
    many = sum(answer.category == CATEGORY_5 for answer in run.answers)
    if reading.counting in ("fooled", "abstain") and many < 10:
        return False  # two questions of category 5 carry an answer and slip into files of categories 1 to 4
    if "masked" in reading.labels and not any(_left_out(answer, reading.labels) for answer in run.answers):
        return False
    if reading.labels == "corrected" and not any(answer.corrected for answer in run.answers):
        return False
    return reading.metric != JUDGE or (bool(run.judges) and bool(categories - {CATEGORY_5}))


def estimate(
    run: ScoredRun, reading: RunReading, *, category: int | None = None, with_interval: bool = False
) -> ReadingEstimate | None:
    """Return a run's mean under a reading, percent, with a cluster t interval; ``None`` if nothing is scored."""
    answers: Sequence[AnsweredQuestion] = run.answers
    if category is not None:
        answers = [answer for answer in answers if answer.category == category]
    found = mean_of_scores(*scores(answers, reading), unit=100)
    if found is None:
        return None
    return ReadingEstimate(found.value, found.interval if with_interval else None, found.questions)
