"""The ranking of systems under one definition: value, rank, and whether the leader is significantly ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from eval.audit.sensitivity.readings import MetricReading
from eval.metrics.registry import higher_is_better, scale_of
from eval.scoring.aggregate import score_name
from eval.scoring.columns import ScoreColumns
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import Floats, Ints, MeanRule, MetricScores

#: Values that agree to this many decimals share a rank.
_TIE_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Standing:
    """One system under one reading.

    Attributes:
        value: the mean, percent; ``None`` where no question was scored.
        rank: 1 for the best; equal values share the better rank; ``None`` for a reference, or without a score.
        tied: another system has the same value.
        unsure: not the first, but the paired 95 % interval of its distance to the first includes 0.
    """

    value: float | None
    rank: int | None = None
    tied: bool = False
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class StandingsRow:
    """One reading with every system's standing, in the order of the systems; ``questions`` counts the common ones."""

    reading: MetricReading
    questions: int
    standings: tuple[Standing, ...]


class RankedField:
    """Compared systems, which answered the same questions.

    Args:
        systems: rows of each, of the same questions in the same order.
        ranked: whether each is ranked, and no reference.
        counts: questions of each category of the published set, for means that weigh by them.
    """

    def __init__(self, systems: Sequence[ScoreColumns], ranked: tuple[bool, ...], counts: Mapping[int, int]) -> None:
        self.ranked, self.counts = ranked, counts
        self._systems = systems
        self.conversations = systems[0].conversations.tolist()
        self.categories = systems[0].categories
        self.kind_of = {row.category: row.kind for row in systems[0]}
        kinds = np.array([row.kind for row in systems[0]], dtype=object)
        self._of_kind = {kind: np.flatnonzero(kinds == kind) for kind in sorted(set(kinds))}

    def __len__(self) -> int:
        return len(self._systems)

    def values(self, system: int, reading: MetricReading) -> Floats:
        """Return a system's value of each question, shape (questions,); NaN where it does not count or has no score."""
        found = np.full(len(self.conversations), np.nan)
        for kind, places in self._of_kind.items():
            if reading.takes(kind):
                name = score_name(reading.metric, kind, reading.adversarial)
                found[places] = self._systems[system].column(name)[places]
        return found


@dataclass(frozen=True, slots=True)
class _Average:
    """The questions of one reading: how they are averaged, and what they belong to."""

    questions: Ints
    conversations: tuple[str, ...]
    strata: Ints
    rule: MeanRule

    def scores(self, values: Floats) -> MetricScores:
        """Take the questions out of the values of all."""
        return MetricScores(values[self.questions], self.conversations, self.strata)


def rank_systems(reading: MetricReading, field: RankedField, sure: bool = True) -> StandingsRow:
    """Rank the systems that were scored in this way, on the questions that all of these were scored on.

    References are scored on the same questions, and hold no rank; nobody holds one under a reading that ranks nothing.

    Args:
        reading: which questions count, and how.
        field: who is compared.
        sure: whether to ask if the first is ahead of each other by more than chance.
    """
    values = {number: own for number in range(len(field)) if not np.isnan(own := field.values(number, reading)).all()}
    questions = np.flatnonzero(~np.isnan(list(values.values())).any(axis=0)) if values else ()
    if not len(questions) or (reading.weights == "counts" and not _weighs(reading, field)):
        return StandingsRow(reading, 0, tuple(Standing(None) for _ in range(len(field))))
    average = _average(np.asarray(questions), reading, field)
    scale = scale_of(reading.metric)
    estimates = {number: mean_of_scores(average.scores(own), average.rule, scale) for number, own in values.items()}
    means = {number: found.value for number, found in estimates.items() if found is not None}
    better = 1 if higher_is_better(reading.metric) else -1
    competing = [number for number in values if field.ranked[number] and not reading.no_ranking]
    places = dict(zip(competing, rank([better * means[number] for number in competing]), strict=True))
    leader = next((number for number, place in places.items() if place == 1), None)

    def unsure(number: int) -> bool:
        if not sure or leader is None or places.get(number, 1) == 1:
            return False
        return _unsure(average.scores(better * (values[leader] - values[number])), average, reading)

    standings = (
        Standing(means.get(number), place, list(places.values()).count(place or 0) > 1, unsure(number))
        for number in range(len(field))
        for place in [places.get(number)]
    )
    return StandingsRow(reading, len(questions), tuple(standings))


def rank(values: Sequence[float]) -> list[int]:
    """Return the ranks from 1, highest first; values equal to six decimals share the better rank."""
    rounded = [round(value, _TIE_DECIMALS) for value in values]
    return [1 + sum(other > value for other in rounded) for value in rounded]


def _weighs(reading: MetricReading, field: RankedField) -> bool:
    """Return whether some category that counts has a weight."""
    return any(reading.takes(field.kind_of[name]) for name in field.counts if name in field.kind_of)


def _average(questions: Ints, reading: MetricReading, field: RankedField) -> _Average:
    """Return the questions with the units that weigh in the mean: categories, or conversations."""
    conversations = tuple(field.conversations[place] for place in questions)
    strata = field.categories[questions]
    if reading.weights == "conversation":
        strata = np.unique(conversations, return_inverse=True)[1].astype(np.int64)
    if reading.weights == "question":
        return _Average(questions, conversations, strata, MeanRule())
    weights = {int(stratum): 1.0 for stratum in np.unique(strata)}
    if reading.weights == "counts":
        weights = {category: float(field.counts[category]) for category in weights if category in field.counts}
    return _Average(questions, conversations, strata, MeanRule(tuple(weights.items())))


def _unsure(differences: MetricScores, average: _Average, reading: MetricReading) -> bool:
    if reading.weights == "conversation":
        found = mean_of_scores(_conversation_means(differences))
    else:
        found = mean_of_scores(differences, average.rule)
    interval = None if found is None else found.interval
    return interval is None or interval.low <= 0


def _conversation_means(scores: MetricScores) -> MetricScores:
    """Return one value for each conversation; for a single one its questions, the interval's units."""
    by_conversation: dict[str, list[float]] = {}
    for value, conversation in zip(scores.values.tolist(), scores.conversations, strict=True):
        by_conversation.setdefault(conversation, []).append(value)
    if len(by_conversation) == 1:
        return scores
    return MetricScores.of((fsum(found) / len(found), name, 0) for name, found in by_conversation.items())
