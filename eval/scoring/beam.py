"""BEAM's score as one figure: the mean of its ten kinds of questions, from a judge of rubrics and the order of events.

Source: github.com/mohammadtavakoli78/BEAM, ``src/evaluation/report_results.py``: of each kind the mean over its
questions, which is the mean worth of a rubric's items, but for event ordering (tau-b + 1) / 2; its table has the ten
means side by side, and the paper their mean. There a kind's mean is first taken within each chat; with as many
questions of a kind in every chat, as published, that is the mean over questions.

A question's part of it is a score of its own: the column of the judge with a suffix that names the order's score.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eval.loaders.beam_questions import CATEGORIES
from eval.metrics.ordering import MODEL_ORDER_METRICS
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import Mean, combine, mean_of
from eval.scoring.columns import ScoreColumns, columns_of
from eval.scoring.protocols import Averaging

#: The kind whose score is that of an order.
ORDERING = "event_ordering"
#: Suffix of the score whose order is aligned by words; every run on BEAM has it.
BY_WORDS = "@beam"
#: Suffix of the score whose order the judge aligned itself; only judges that were told to do so have it.
BY_MODEL = "@beam_model"
#: Suffix of the score's column -> what event ordering counts.
ORDERS: Mapping[str, str] = {
    BY_WORDS: "order_tau",
    "@beam_semantic": "order_tau_semantic",
    BY_MODEL: "order_tau_model",
}
#: The kinds weigh alike, and what has no answer counts as all others.
AVERAGING = Averaging("paper_trap", "category_mean")
#: What the score is called.
TITLE = "BEAM score"
_HOW = {
    BY_WORDS: "aligned by words",
    "@beam_semantic": "aligned by sentence embeddings",
    BY_MODEL: "aligned by the judge's model",
}


@dataclass(frozen=True, slots=True)
class BeamScore:
    """The score of one run.

    Attributes:
        order: score of event ordering that it has.
        overall: mean of the kinds that have a score.
        kinds: mean of each kind that the run has questions of, by BEAM's name.
        missing: kinds without any scored question, in BEAM's order.
    """

    order: str
    overall: Mean
    kinds: Mapping[str, Mean]
    missing: tuple[str, ...]


def has_questions(rows: Sequence[ScoreRow]) -> bool:
    """Return whether a run asks questions of BEAM; no other data set has its category numbers."""
    return any(row.category in CATEGORIES for row in rows)


def is_beam_score(metric: str) -> bool:
    """Return whether a column holds the parts of the score."""
    return metric.endswith(tuple(ORDERS))


def score_columns(judge: str) -> tuple[str, ...]:
    """Return the columns that the score has with a judge, whose column this is."""
    return tuple(judge + suffix for suffix in ORDERS)


def order_columns(judge: str) -> tuple[str, ...]:
    """Return the columns of the orders that a judge aligned itself."""
    return tuple(f"{judge}@{name}" for name in MODEL_ORDER_METRICS)


def rests_on_pairs(column: str) -> bool:
    """Return whether a column uses a judge's verdicts on pairs of events: an order, or the score with it."""
    return column.endswith((BY_MODEL, *order_columns("")))


def title(metric: str) -> str:
    """Return a column's title: ``BEAM score``, with the alignment of the order's items if not lexical."""
    suffix = f"@{metric.rpartition('@')[2]}"
    return TITLE if suffix == BY_WORDS else f"{TITLE}, order {_HOW[suffix]}"


def meaning(metric: str, missing: Sequence[str] = ()) -> str:
    """Return a column's definition and its missing categories."""
    suffix = f"@{metric.rpartition('@')[2]}"
    lacking = f"; without a score, and so in no mean: {', '.join(missing)}" if missing else ""
    return (
        f"mean of {len(CATEGORIES) - len(missing)} of BEAM's {len(CATEGORIES)} kinds, percent: of a rubric's items, "
        f"and of event ordering {ORDERS[suffix]} ({_HOW[suffix]}){lacking}"
    )


def with_beam_scores(rows: Sequence[ScoreRow], judge: str) -> list[ScoreRow]:
    """Add the columns of the score to rows with a judge's: that by words, and others whose order was scored."""
    scored = {name for row in rows for name in row.metrics}
    suffixes = [suffix for suffix in ORDERS if suffix == BY_WORDS or _order_column(judge, suffix) in scored]
    return [
        replace(row, metrics={**row.metrics, **{judge + suffix: _part(row, judge, suffix) for suffix in suffixes}})
        for row in rows
    ]


def _part(row: ScoreRow, judge: str, suffix: str) -> float | None:
    if row.category not in CATEGORIES:
        return None
    return row.metrics.get(_order_column(judge, suffix) if CATEGORIES[row.category] == ORDERING else judge)


def _order_column(judge: str, suffix: str) -> str:
    return f"{judge}@{ORDERS[suffix]}" if suffix == BY_MODEL else ORDERS[suffix]


def missing_kinds(runs: Iterable[ScoreColumns], metric: str) -> tuple[str, ...]:
    """Return the kinds of which one of the runs with the score has no scored question, in BEAM's order."""
    known = [set(columns.with_any([metric]).categories.tolist()) for columns in runs]
    scored = [categories for categories in known if categories]
    return tuple(name for number, name in CATEGORIES.items() if any(number not in own for own in scored))


def beam_scores(rows: Sequence[ScoreRow], judge: str) -> dict[str, BeamScore]:
    """Return the score of a run by its column.

    Args:
        rows: with the judge's column.
        judge: name of that column.
    """
    rows = with_beam_scores(rows, judge)
    held = {name for row in rows for name in row.metrics}
    return {metric: _score(rows, metric) for metric in score_columns(judge) if metric in held}


def _score(rows: Sequence[ScoreRow], metric: str) -> BeamScore:
    kinds = {
        name: mean_of(own)
        for number, name in CATEGORIES.items()
        if (own := [row.metrics.get(metric) for row in rows if row.category == number])
    }
    overall = combine(list(kinds.values()), AVERAGING.weighting)
    return BeamScore(ORDERS[f"@{metric.rpartition('@')[2]}"], overall, kinds, missing_kinds([columns_of(rows)], metric))
