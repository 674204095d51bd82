"""Verdicts of judges on a run, for its summary."""

from collections.abc import Sequence
from statistics import pstdev

from eval.metrics.ordering import MODEL_ORDER_METRICS
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import Mean, mean_of
from eval.scoring.beam import beam_scores, has_questions, with_beam_scores
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import MICRO, MeanRule, MetricScores
from eval.scoring.means import mean_or_none
from eval.scoring.verdicts.store import ORDER, StoredVerdicts, with_judge
from memsys.vocabulary import Json


def judge_summary(judged: StoredVerdicts, rows: Sequence[ScoreRow]) -> Json:
    """Describe a judge's verdicts on a run.

    Args:
        judged: the verdicts.
        rows: the run's scores, for the questions' categories.

    Returns:
        ``correct`` (share of answers called right), its ``interval``, ``questions``, ``scored``, ``unscored`` (no
        readable verdict), ``repeats`` (accuracy of each, mean, population deviation, answers whose verdict changed),
        ``by_category``, ``identity`` of the judge and its ``probe``; of a judge of BEAM's rubrics also ``beam``, the
        score of :mod:`eval.scoring.beam` by its column, and of one that aligned orders ``order``: the mean of each of
        their scores, the verdicts asked for, and how many were unreadable.
    """
    shares = judged.shares()
    values = [(row, shares[row.question_id]) for row in rows if row.question_id in shares]
    total = mean_of(value for _, value in values)
    categories = sorted({row.category for row, _ in values})
    by_category = {
        str(category): mean_of(value for row, value in values if row.category == category) for category in categories
    }
    return {
        "judge": judged.meta["judge"],
        "backbone": judged.meta["backbone"],
        "correct": total.value,
        "interval": _interval([(row, value) for row, value in values if value is not None]),
        "questions": len(values),
        "scored": total.scored,
        "unscored": total.unscored,
        "unreadable_verdicts": sum(verdict.verdict is None for verdict in judged.verdicts),
        "repeats": _repeats(judged),
        "by_category": {name: _mean(mean) for name, mean in by_category.items()},
        "probe": judged.meta["probe"],
        "identity": judged.meta["identity"],
        **({"order": _order(judged)} if judged.orders else {}),
        **({"beam": _beam(judged, rows)} if judged.by_rubric and has_questions(rows) else {}),
    }


def _mean(mean: Mean) -> Json:
    return {"mean": mean.value, "scored": mean.scored, "unscored": mean.unscored}


def _order(judged: StoredVerdicts) -> Json:
    orders = judged.orders
    assert orders is not None
    means = {name: _mean(mean_of(one[name] for one in orders.scores.values())) for name in MODEL_ORDER_METRICS}
    asked = {key: judged.meta[ORDER][key] for key in ("prompt_sha256", "repeats")}
    return {**means, "verdicts": len(orders.verdicts), "unreadable": orders.unreadable, **asked}


def _beam(judged: StoredVerdicts, rows: Sequence[ScoreRow]) -> Json:
    """Return BEAM's score by its column: ``score`` and its ``interval``, ``kinds``, ``missing``, how it was made."""
    rows = with_beam_scores(with_judge(rows, judged), judged.column)
    rule = MeanRule(tuple((category, 1.0) for category in sorted({row.category for row in rows})))
    return {
        metric: {
            "score": found.overall.value,
            "interval": _interval([(row, value) for row in rows if (value := row.metrics[metric]) is not None], rule),
            "kinds": {name: _mean(mean) for name, mean in found.kinds.items()},
            "missing": list(found.missing),
            "order": found.order,
            "halves": judged.halves,
        }
        for metric, found in beam_scores(rows, judged.column).items()
    }


def _interval(values: Sequence[tuple[ScoreRow, float]], rule: MeanRule = MICRO) -> Json:
    scores = MetricScores.of((value, row.conversation_id, row.category) for row, value in values)
    found = mean_of_scores(scores, rule)
    interval = None if found is None else found.interval
    return None if interval is None else {"low": interval.low, "high": interval.high, "by": interval.by}


def _repeats(judged: StoredVerdicts) -> Json:
    """Return the accuracy of each repeat, as papers that judge several times report it."""
    accuracies = [mean_of(values.values()).value for values in judged.by_repeat()]
    known = [value for value in accuracies if value is not None]
    return {
        "accuracies": accuracies,
        "mean": mean_or_none(known),
        "std": pstdev(known) if known else None,
        "changed": judged.changed(),
    }
