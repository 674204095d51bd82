"""Metrics and judges against people: 1,982 answers of one system that were labelled by hand, and wrong answers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.audit.config import AuditConfig
from eval.audit.leaderboard import CATEGORY_NAMES, Row
from eval.audit.readings import JUDGE, RunReading, values
from eval.audit.scores import AnsweredQuestion, ScoredRun
from eval.metrics.locomo import CATEGORY_5
from eval.scoring.inference import LEVEL, Floats, Ints, t_quantile

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Scores next to labels of people, answer by answer; ``units`` numbers the conversations."""

    values: Floats
    right: Flags
    units: Ints


def against_people(run: ScoredRun, config: AuditConfig) -> list[Row]:
    """Return the agreement of every metric with the labels in a run, overall (categories 1 to 4) and by category."""
    found = []
    for metric in config.metrics:
        for name, answers in _groups(run.answers):
            labelled = _labelled(answers, metric)
            if labelled is not None:
                found.append({"metric": metric, "category": name, **agreement(labelled)})
    return found


def _groups(answers: Sequence[AnsweredQuestion]) -> list[tuple[str, list[AnsweredQuestion]]]:
    answerable = [answer for answer in answers if answer.category != CATEGORY_5]
    single = [
        (CATEGORY_NAMES[number], [answer for answer in answers if answer.category == number])
        for number in sorted({answer.category for answer in answers})
    ]
    return [("1-4", answerable), *single]


def _labelled(answers: Iterable[AnsweredQuestion], metric: str) -> Labelled | None:
    rows = [
        (answer.metrics[metric], next(iter(answer.verdicts.values())) > 0.5, answer.conversation_id)
        for answer in answers
        if metric in answer.metrics and answer.verdicts
    ]
    if len({right for _, right, _ in rows}) < 2:
        return None  # one label alone: nothing can agree or disagree with it
    names = sorted({conversation for _, _, conversation in rows})
    return Labelled(
        np.array([value for value, _, _ in rows]),
        np.array([right for _, right, _ in rows]),
        np.array([names.index(conversation) for _, _, conversation in rows]),
    )


def agreement(labelled: Labelled) -> Row:
    """Return agreement and kappa at a held-out threshold, AUC and Kendall's tau-b, with 95 % intervals.

    What is named ``in_sample`` is of the threshold with the highest accuracy on all of these answers, which flatters.
    What is named ``held_out`` takes for each conversation the threshold that is best on the others; it is NaN with one
    conversation. Area and tau-b need no threshold. Intervals are of a jackknife over conversations at these calls, with
    Student's t and one degree of freedom less than there are conversations; over ten of them a bootstrap's are too
    short (``results/audit/coverage.md``).
    """
    right = labelled.right
    threshold = best_threshold(labelled.values, right)
    count = int(labelled.units.max()) + 1
    weights = np.vstack([np.ones((1, count)), 1 - np.eye(count)])
    auc, tau = _rank_figures(labelled, weights)
    held_out = _held_out_calls(labelled)
    accuracy = kappa = np.full(len(weights), np.nan)
    if held_out is not None:
        accuracy, kappa = _table_figures(weights @ _cells(held_out, right, labelled.units))
    return {
        "answers": len(right),
        "right": 100 * float(right.mean()),
        "threshold_in_sample": float(threshold),
        "accuracy_in_sample": 100 * float(((labelled.values >= threshold) == right).mean()),
        **_with_interval("accuracy_held_out", 100 * accuracy),
        "always_one_label": 100 * max(float(right.mean()), 1 - float(right.mean())),
        **_with_interval("kappa_held_out", kappa),
        **_with_interval("auc", auc),
        **_with_interval("tau", tau),
    }


def _with_interval(name: str, figures: Floats) -> Row:
    """Return a figure of all conversations with its jackknife interval; the full sample's value comes first."""
    value, left_out = float(figures[0]), figures[1:]
    count = len(left_out)
    if count < 2:
        return {name: value, f"{name}_low": float("nan"), f"{name}_high": float("nan")}
    error = float(np.sqrt((count - 1) / count * np.sum((left_out - left_out.mean()) ** 2)))
    half = t_quantile((1 + LEVEL) / 2, count - 1) * error
    return {name: value, f"{name}_low": value - half, f"{name}_high": value + half}


def best_threshold(scores: Floats, right: Flags) -> float:
    """Return the lowest threshold whose ``score >= threshold`` agrees best with labels; infinity accepts none."""
    order = np.argsort(scores)
    ordered, labels = scores[order], right[order].astype(np.int64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ordered) > 0) + 1])
    wrong_below = np.concatenate([[0], np.cumsum(1 - labels)])
    right_above = labels.sum() - np.concatenate([[0], np.cumsum(labels)])
    agreed = (wrong_below + right_above)[np.append(starts, len(labels))]
    best = int(np.argmax(agreed))
    return float(ordered[starts[best]]) if best < len(starts) else float("inf")


def _held_out_calls(labelled: Labelled) -> Flags | None:
    """Return which answers are accepted, each by the best threshold on the other conversations; none with one."""
    called = np.zeros(len(labelled.right), dtype=np.bool_)
    for unit in np.unique(labelled.units):
        own = labelled.units == unit
        if own.all():
            return None
        called[own] = labelled.values[own] >= best_threshold(labelled.values[~own], labelled.right[~own])
    return called


def _cells(called: Flags, right: Flags, units: Ints) -> Floats:
    """Return 2x2 counts by conversation, accepted-and-right first; shape (units, 4)."""
    index = units * 4 + np.where(called, 0, 2) + np.where(right, 0, 1)
    return np.bincount(index, minlength=4 * (int(units.max()) + 1)).reshape(-1, 4).astype(np.float64)


def _table_figures(cells: Floats) -> tuple[Floats, Floats]:
    """Return the accuracy and Cohen's kappa of tables, shape (rows, 4)."""
    total = cells.sum(axis=1)
    observed = (cells[:, 0] + cells[:, 3]) / total
    called, right = (cells[:, 0] + cells[:, 1]) / total, (cells[:, 0] + cells[:, 2]) / total
    expected = called * right + (1 - called) * (1 - right)
    with np.errstate(invalid="ignore", divide="ignore"):
        return observed, (observed - expected) / (1 - expected)


def _rank_figures(labelled: Labelled, drawn: Floats) -> tuple[Floats, Floats]:
    """Return AUC and tau-b for each row of conversation weights, from pair sums by conversation."""
    order = np.argsort(labelled.units, kind="stable")
    scores, right, units = labelled.values[order], labelled.right[order], labelled.units[order]
    starts = np.searchsorted(units, np.arange(int(units.max()) + 1))
    signs = np.sign(scores[:, None] - scores[None, :])
    across = (right[:, None] & ~right[None, :]).astype(np.float64)
    lead, labels, untied = (_by_units(matrix, starts) for matrix in (signs * across, across, np.abs(signs)))
    lead, labels, untied = (np.einsum("ri,ij,rj->r", drawn, one, drawn) for one in (lead, labels, untied))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (lead / labels + 1) / 2, lead / np.sqrt(labels * untied / 2)


def _by_units(matrix: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1))


def judges_against_people(runs: Sequence[ScoredRun], people: ScoredRun, config: AuditConfig) -> list[Row]:
    """Compare recorded judges with people's labels of equal answers to a question, from any system.

    Case, punctuation and articles do not count. Answers that many systems give are short and easier than most: the
    figures say how a judge does on these alone.
    """
    labels = {one.digest: next(iter(one.verdicts.values())) > 0.5 for one in people.answers if one.verdicts}
    shared: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for run in runs:
        if run is people or run.entry.dataset != people.entry.dataset:
            continue
        for answer in run.answers:
            if answer.digest in labels and answer.category != CATEGORY_5:
                for judge, value in answer.verdicts.items():
                    if value != 0.5:
                        name = f"{run.entry.repository}: {judge}"
                        shared[name].append((value > 0.5, labels[answer.digest]))
    found = []
    for name, pairs in sorted(shared.items()):
        if len(pairs) < config.shared:
            continue
        called, right = (np.array(one) for one in zip(*pairs, strict=True))
        accuracy, kappa = _table_figures(_cells(called, right, np.zeros(len(pairs), dtype=np.int64)))
        found.append(
            {
                "judge": name,
                "answers": len(pairs),
                "right_by_people": 100 * float(right.mean()),
                "right_by_judge": 100 * float(called.mean()),
                "accuracy": 100 * float(accuracy[0]),
                "kappa": None if np.isnan(kappa[0]) else float(kappa[0]),
                "wrong_accepted": _share(called[~right]),
                "right_rejected": _share(~called[right]),
            }
        )
    return found


def _share(flags: Flags) -> float | None:
    return 100 * float(flags.mean()) if len(flags) else None


def on_wrong_answers(run: ScoredRun) -> list[Row]:
    """Return the share of intentionally wrong answers that a judge accepts, with their scores."""
    found = []
    for name, answers in _groups(run.answers):
        judged = [value for _, value in values(answers, RunReading(JUDGE, "printed", "abstain"))]
        scored = [value for _, value in values(answers, RunReading("f1_set", "printed", "abstain"))]
        if judged:
            found.append(
                {
                    "category": name,
                    "answers": len(judged),
                    "accepted": 100 * sum(value > 0.5 for value in judged) / len(judged),
                    "f1_set": 100 * sum(scored) / len(scored) if scored else None,
                }
            )
    return found


def length_bias(runs: Sequence[ScoredRun], config: AuditConfig) -> list[Row]:
    """Correlate the log of an answer's length with its score, within runs and between answers to one question.

    ``within_question`` compares answers of different systems to the same question: words and scores less their mean
    over the systems. That leaves out that some questions need longer answers and are harder. NaN where there is
    nothing to correlate: with one run, no question has two answers. A metric that no answer has is left out.
    """
    found: list[Row] = []
    for metric in (config.lead, "meteor", JUDGE):
        rows = [
            (run.entry.name, answer.question_id, answer.words, value)
            for run in runs
            for answer, value in values(run.answers, RunReading(metric, "printed", "question"))
        ]
        if not rows:
            continue
        found.append(
            {
                "metric": metric,
                "answers": len(rows),
                "within_run": _correlation(rows, key=0),
                "within_question": _correlation(rows, key=1),
                "between_runs": _between(rows),
            }
        )
    return found


def _correlation(rows: Sequence[tuple[str, str, int, float]], key: int) -> float:
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        groups[str(row[key])].append((row[2], row[3]))
    words, scores = [np.zeros(0)], [np.zeros(0)]
    for own in groups.values():
        if len(own) > 1:
            array = np.array([(np.log1p(length), value) for length, value in own])
            centred = array - array.mean(axis=0)
            words.append(centred[:, 0])
            scores.append(centred[:, 1])
    return _pearson(np.concatenate(words), np.concatenate(scores))


def _pearson(one: Floats, other: Floats) -> float:
    """Return Pearson's correlation; NaN where undefined: fewer than two values, or all values equal."""
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _between(rows: Sequence[tuple[str, str, int, float]]) -> float:
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for run, _, length, value in rows:
        groups[run].append((length, value))
    means: Mapping[str, tuple[float, float]] = {
        run: (float(np.log1p(np.median([length for length, _ in own]))), float(np.mean([value for _, value in own])))
        for run, own in groups.items()
    }
    words, scores = np.array(list(means.values())).T
    return _pearson(words, scores)
