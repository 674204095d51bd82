"""A group's scores by category, by where the evidence lies, by its age, and by the length of the answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.metrics.kept import date_parts
from eval.report.groups import Scored
from eval.runs.memories import Memories
from eval.runs.records import ReferenceRecord, ScoreRow
from eval.scoring.combination import COMPUTED, combination, slices_of
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import MetricScores
from memsys.vocabulary import Json

_DIGITS = 2
_LENGTHS = ((1, 2), (3, 5), (6, None))


@dataclass(frozen=True, slots=True)
class Known:
    """Properties of questions by which slices are made.

    Attributes:
        references: gold by question id; empty where only summaries are here.
        places: question id -> turns between the farthest evidence and the end of the conversation.
        ages: question id -> days between the oldest evidence and the last turn.
        categories: name by number.
    """

    references: Mapping[str, ReferenceRecord]
    places: Mapping[str, float]
    ages: Mapping[str, float]
    categories: Mapping[int, str]


def distances(
    references: Mapping[str, ReferenceRecord], memories: Sequence[Memories]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return how far and how old the evidence of each question is.

    Turns are known from the memories of all runs together: one that stores every turn is enough. Questions whose
    evidence no memory names are absent.

    Args:
        references: gold by question id.
        memories: of the runs of a group.

    Returns:
        Turns to the end of the conversation, and days to its last turn.
    """
    turns, dates = {}, {}
    for conversation in {one.conversation_id for one in references.values()}:
        known = {turn: date for memory in memories for turn, date in memory.dates(conversation).items()}
        order = sorted(known, key=_natural)
        turns[conversation] = {turn: len(order) - 1 - index for index, turn in enumerate(order)}
        last = max((date for date in known.values() if date is not None), default=None)
        dates[conversation] = {t: (last - d).total_seconds() / 86400 for t, d in known.items() if last and d}
    return _farthest(references, turns), _farthest(references, dates)


def _farthest(references: Mapping[str, ReferenceRecord], found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    values = {name: [found[one.conversation_id].get(turn) for turn in one.evidence] for name, one in references.items()}
    return {
        name: max(v for v in own if v is not None)
        for name, own in values.items()
        if own and all(v is not None for v in own)
    }


def _natural(turn: str) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", turn)]


def slices(scored: Scored, known: Known) -> list[Json]:
    """Return every run's means by slice, ``{title, parts: [{label, questions, figures}]}``, without empty kinds."""
    combined = {row.question_id: _combined(known.references.get(row.question_id)) for row in scored.rows}
    kinds: list[tuple[str, Callable[[ScoreRow], str | None]]] = [
        ("category", lambda row: f"{row.category} {known.categories.get(row.category, '')}".strip()),
        ("what must be combined", lambda row: next(iter(combined[row.question_id]), None)),
        ("date of the answer", lambda row: _dated(known.references.get(row.question_id), combined[row.question_id])),
        ("turns from the evidence to the end", _binned(known.places, scored, "turns")),
        ("age of the evidence", _binned(known.ages, scored, "days")),
        ("words of the gold answer", lambda row: _length(known.references.get(row.question_id))),
    ]
    found: list[Json] = []
    for title, label in kinds:
        parts = _parts(scored, [label(row) for row in scored.rows])
        if parts:
            found.append({"title": title, "parts": parts})
    return found


def _parts(scored: Scored, labels: Sequence[str | None]) -> list[Json]:
    found: list[Json] = []
    for label in sorted({one for one in labels if one is not None}, key=_natural):
        chosen = [index for index, one in enumerate(labels) if one == label]
        values = scored.values[chosen]
        conversations = tuple(scored.rows[index].conversation_id for index in chosen)
        figures = [
            _figures(MetricScores(column, conversations, np.zeros(len(column), np.int64))) for column in values.T
        ]
        found.append({"label": label, "questions": len(chosen), "figures": figures})
    return found


def _figures(scores: MetricScores) -> list[float]:
    """Return the mean with the ends of its interval, where there is one; nothing without scores."""
    found = mean_of_scores(scores)
    if found is None:
        return []
    interval = found.interval
    ends = () if interval is None else (interval.low, interval.high)
    return [round(value, _DIGITS) for value in (found.value, *ends)]


def _binned(values: Mapping[str, float], scored: Scored, unit: str) -> Callable[[ScoreRow], str | None]:
    """Return the thirds of the questions by a value, named by their ends."""
    own = sorted(values[row.question_id] for row in scored.rows if row.question_id in values)
    if not own:
        return lambda row: None
    edges = sorted({float(edge) for edge in np.quantile(own, [1 / 3, 2 / 3, 1], method="higher")})

    def label(row: ScoreRow) -> str | None:
        value = values.get(row.question_id)
        if value is None:
            return None
        place = next(index for index, edge in enumerate(edges) if value <= edge)
        low = min(one for one in own if place == 0 or one > edges[place - 1])
        return f"{low:,.0f} to {edges[place]:,.0f} {unit}"

    return label


def _combined(reference: ReferenceRecord | None) -> tuple[str, ...]:
    """Return the slices that a question is in by what its answer is put together from; none where it is not known."""
    if reference is None:
        return ()
    marks = combination(reference)
    return slices_of(
        ScoreRow(reference.question_id, reference.conversation_id, reference.category, marks, reference.kind)
    )


def _dated(reference: ReferenceRecord | None, combined: Sequence[str]) -> str | None:
    if reference is None or not any(map(date_parts, reference.answers)):
        return None
    return COMPUTED if COMPUTED in combined else "said in a gold turn"


def _length(reference: ReferenceRecord | None) -> str | None:
    if reference is None or not reference.answers:
        return None
    words = min(len(answer.split()) for answer in reference.answers)
    low, high = next((a, b) for a, b in _LENGTHS if b is None or words <= b)
    return f"{low} or more words" if high is None else f"{low} to {high} words"
