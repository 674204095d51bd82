"""Each system against the first one on the questions that both answered."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.compare.rows import SystemRow, lead_metric
from eval.inference import Scores
from eval.paired import Comparison, compare_paired, holm
from eval.protocols import Protocol
from eval.scoring import ScoreRow
from eval.tables.measure import counted_categories, mean_of_protocol, score_name


@dataclass(frozen=True, slots=True)
class Pair:
    """One comparison; ``adjusted`` is its p-value after Holm's correction over the comparisons of this metric."""

    system: str
    baseline: str
    column: str
    result: Comparison
    adjusted: float | None


def paired_differences(ours: Sequence[ScoreRow], theirs: Sequence[ScoreRow], metric: str, protocol: Protocol) -> Scores:
    """Score differences, percent, on the questions of the protocol that both runs scored."""
    other = {row.question_id: row for row in theirs}
    counted, found = counted_categories(protocol), []
    for row in ours:
        if row.question_id not in other or row.category not in counted:
            continue
        name = score_name(metric, row.category, protocol)
        mine, its = row.metrics.get(name), other[row.question_id].metrics.get(name)
        if mine is not None and its is not None:
            found.append((100 * (mine - its), row.conversation_id, row.category))
    return Scores(
        np.array([value for value, _, _ in found], dtype=np.float64),
        tuple(conversation for _, conversation, _ in found),
        np.array([category for _, _, category in found], dtype=np.int64),
    )


def compare_with_first(rows: Sequence[SystemRow], protocol: Protocol) -> list[Pair]:
    """Compare every system with the first on the lead metric and on evidence recall; none without shared questions."""
    lead = lead_metric([row.run for row in rows], protocol)
    pairs = []
    for column, metric in dict([lead, ("R@10", "recall@10")]).items():
        pairs += _one_metric(rows, column, metric, protocol)
    return pairs


def _one_metric(rows: Sequence[SystemRow], column: str, metric: str, protocol: Protocol) -> list[Pair]:
    first, mean = rows[0], mean_of_protocol(protocol)
    found = []
    for row in rows[1:]:
        if row.run.dataset != first.run.dataset:
            continue
        differences = paired_differences(row.run.rows, first.run.rows, metric, protocol)
        if len(differences.values):
            found.append((row.label, compare_paired(differences, mean)))
    tested = [result.p_value for _, result in found if result.p_value is not None]
    adjusted = iter(holm(tested))
    return [
        Pair(label, first.label, column, result, None if result.p_value is None else next(adjusted))
        for label, result in found
    ]
