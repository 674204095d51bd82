"""Parts that an answer is put together from, by the gold evidence of any data set: turns, sessions, a date."""

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.kept import date_parts
from eval.runs.records import ReferenceRecord, ScoreRow
from eval.scoring.config import Scores

#: Names of the marks among a question's scores: gold turns, sessions that they lie in, and whether the answer has a
#: day, a month or a year that no gold turn says, so that it follows from when the turn was said.
TURNS, SESSIONS, DATE = "evidence_turns", "evidence_sessions", "computed_date"
#: Labels of the slices, in the order of tables; a question is in one of the first five, and may be in the last one.
ONE, SEVERAL, ACROSS, NOTHING, UNNAMED = "one turn", "turns of a session", "several sessions", "no answer", "not named"
COMPUTED = "a date computed"
SLICES = (ONE, SEVERAL, ACROSS, COMPUTED, NOTHING, UNNAMED)


def combination(reference: ReferenceRecord) -> Scores:
    """Return the marks of a question; sessions only where the run's files say them."""
    said = frozenset[tuple[str, int]]().union(*map(date_parts, reference.evidence_texts))
    dates = [date_parts(answer) for answer in reference.answers]
    computed = bool(reference.evidence_texts and dates) and all(parts - said for parts in dates)
    sessions = reference.evidence_sessions
    return {
        TURNS: float(len(set(reference.evidence))),
        **({} if sessions is None else {SESSIONS: float(sessions)}),
        **({DATE: 1.0} if computed and reference.kind != ADVERSARIAL else {}),
    }


def slices_of(row: ScoreRow) -> tuple[str, ...]:
    """Return the slices that a question is in; none for a row that was scored without the marks."""
    turns = row.metrics.get(TURNS)
    if turns is None:
        return ()
    computed = (COMPUTED,) if row.metrics.get(DATE) else ()
    return (_evidence(row.kind, turns, row.metrics.get(SESSIONS)), *computed)


def _evidence(kind: str, turns: float, sessions: float | None) -> str:
    if kind == ADVERSARIAL:
        return NOTHING
    if not turns:
        return UNNAMED
    return ONE if turns == 1 else ACROSS if sessions is not None and sessions > 1 else SEVERAL
