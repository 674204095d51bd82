"""The ranking of systems under one definition: value, rank, and whether the leader is significantly ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from eval.audit.sensitivity.readings import MetricReading
from eval.metrics.registry import higher_is_better, scale_of
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import score_name
from eval.scoring.clusters import cluster_interval
from eval.scoring.inference import MeanRule, MetricScores, point

#: Values that agree to so many decimals share a rank.
_TIE_DECIMALS = 6
#: Question id -> value, conversation, category.
_Scored = Mapping[str, tuple[float, str, int]]


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


@dataclass(frozen=True, slots=True)
class RankedField:
    """Compared systems: rows of each by question id, whether it is ranked, and questions of each category.

    The questions are those of the published set, for means that weigh by them.
    """

    systems: Sequence[Mapping[str, ScoreRow]]
    ranked: tuple[bool, ...]
    counts: Mapping[int, int]


def rank_systems(reading: MetricReading, field: RankedField, sure: bool = True) -> StandingsRow:
    """Rank the systems that were scored in this way, on the questions that all of these were scored on.

    References are scored on the same questions, and hold no rank; nobody holds one under a reading that ranks nothing.

    Args:
        reading: which questions count, and how.
        field: who is compared.
        sure: whether to ask if the first is ahead of each other by more than chance.
    """
    systems, counts = field.systems, field.counts
    nobody = StandingsRow(reading, 0, tuple(Standing(None) for _ in systems))
    kinds = {row.category: row.kind for rows in systems for row in rows.values()}
    if reading.weights == "counts" and not any(reading.takes(kinds[name]) for name in counts if name in kinds):
        return nobody
    scored = {number: one for number, rows in enumerate(systems) if (one := _scored(rows, reading))}
    common = sorted(frozenset.intersection(*map(frozenset, scored.values()))) if scored else []
    if not common:
        return nobody
    scale = scale_of(reading.metric)
    values = {number: scale * _mean([one[name] for name in common], reading, counts) for number, one in scored.items()}
    better = 1 if higher_is_better(reading.metric) else -1
    competing = [number for number in scored if field.ranked[number] and not reading.no_ranking]
    places = dict(zip(competing, rank([better * values[number] for number in competing]), strict=True))
    leader = next((number for number, place in places.items() if place == 1), None)

    def unsure(number: int) -> bool:
        if not sure or leader is None or places.get(number, 1) == 1:
            return False
        pair = scored[leader], scored[number]
        return _unsure(pair if better > 0 else pair[::-1], common, reading, counts)

    standings = (
        Standing(values.get(number), place, list(places.values()).count(place or 0) > 1, unsure(number))
        for number in range(len(systems))
        for place in [places.get(number)]
    )
    return StandingsRow(reading, len(common), tuple(standings))


def rank(values: Sequence[float]) -> list[int]:
    """Return the ranks from 1, highest first; values equal to six decimals share the better rank."""
    rounded = [round(value, _TIE_DECIMALS) for value in values]
    return [1 + sum(other > value for other in rounded) for value in rounded]


def _scored(rows: Mapping[str, ScoreRow], reading: MetricReading) -> _Scored:
    found = {}
    for name, row in rows.items():
        if reading.takes(row.kind):
            value = row.metrics.get(score_name(reading.metric, row.kind, reading.adversarial))
            if value is not None:
                found[name] = (value, row.conversation_id, row.category)
    return found


def _spread(
    values: Sequence[tuple[float, str, int]], reading: MetricReading, counts: Mapping[int, int]
) -> tuple[MetricScores, MeanRule]:
    """Return the scores with the units that weigh in the mean: categories, or conversations."""
    if reading.weights == "conversation":
        number = {name: index for index, name in enumerate(sorted({conversation for _, conversation, _ in values}))}
        values = [(value, conversation, number[conversation]) for value, conversation, _ in values]
    scores = MetricScores.of(values)
    if reading.weights == "question":
        return scores, MeanRule()
    weights = {stratum: 1.0 for stratum in sorted({stratum for _, _, stratum in values})}
    if reading.weights == "counts":
        weights = {category: float(counts[category]) for category in weights if category in counts}
    return scores, MeanRule(tuple(weights.items()))


def _mean(values: Sequence[tuple[float, str, int]], reading: MetricReading, counts: Mapping[int, int]) -> float:
    return point(*_spread(values, reading, counts))


def _unsure(
    pair: tuple[_Scored, _Scored], common: Sequence[str], reading: MetricReading, counts: Mapping[int, int]
) -> bool:
    first, other = pair
    differences = [(first[name][0] - other[name][0], *first[name][1:]) for name in common]
    if reading.weights == "conversation":
        interval = cluster_interval(MetricScores.of(_conversation_means(differences)))
    else:
        interval = cluster_interval(*_spread(differences, reading, counts))
    return interval is None or interval.low <= 0


def _conversation_means(values: Sequence[tuple[float, str, int]]) -> Sequence[tuple[float, str, int]]:
    """Return one value for each conversation; for a single one its questions, the interval's units."""
    by_conversation: dict[str, list[float]] = {}
    for value, conversation, _ in values:
        by_conversation.setdefault(conversation, []).append(value)
    if len(by_conversation) == 1:
        return values
    return [(fsum(found) / len(found), conversation, 0) for conversation, found in by_conversation.items()]
