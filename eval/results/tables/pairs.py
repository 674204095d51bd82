"""Two runs on the questions that both answered, and a family of such tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eval.metrics.registry import METRICS, scale_of
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import differing_parts
from eval.runs.records import ScoreRow
from eval.scoring.columns import columns_of
from eval.scoring.estimates import mean_rule
from eval.scoring.inference import ALPHA, MetricScores
from eval.scoring.paired import PairedComparison, compare_paired, holm
from eval.scoring.protocols import Protocol

#: What a test allows to say of a system and its baseline. Empty: one conversation was asked about, which says nothing
#: of others, nor of another build of the same memory. ``exploratory``: outside of the declared family.
Verdict = Literal["above", "below", "not confirmed", "exploratory", "", "no test"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One comparison.

    Attributes:
        where: place of the family.
        system: label.
        baseline: label of what it is compared with.
        column: heading of the metric.
        result: of the test.
        adjusted: p-value after Holm's correction over the tests of the declared family; ``None`` outside of it.
        differing: parts besides the memory in which the two runs differ.
    """

    where: str
    system: str
    baseline: str
    column: str
    result: PairedComparison
    adjusted: float | None
    differing: tuple[str, ...] = ()
    exploratory: bool = True

    @property
    def verdict(self) -> Verdict:
        """Verdict of the pair, the one source of every sentence, mark and table.

        A difference is confirmed where the p-value after Holm's correction is below 0.05 and the interval leaves out 0.
        """
        interval = self.result.interval
        if interval is None:
            return "no test"
        if interval.by == "question":
            return ""
        if self.adjusted is None:
            return "exploratory"
        if self.adjusted >= ALPHA or interval.low <= 0 <= interval.high:
            return "not confirmed"
        return "above" if self.result.difference > 0 else "below"

    @property
    def adjusted_error(self) -> float:
        """Standard error of the corrected p-value by drawing; 0 where it is exact."""
        raw = self.result.p_value
        return self.result.p_error * self.adjusted / raw if raw and self.adjusted else 0.0


@dataclass(frozen=True, slots=True)
class Contestant:
    """One system of a family of tests: its label, its scores, and the run that they are of (the first of several)."""

    label: str
    rows: Sequence[ScoreRow]
    run: StoredRun | None = None


def paired_differences(
    ours: Sequence[ScoreRow], theirs: Sequence[ScoreRow], metric: str, protocol: Protocol
) -> MetricScores:
    """Score differences in the metric's unit on the questions of the protocol that both runs scored."""
    mine, its = columns_of(ours), columns_of(theirs)
    places = np.array([its.places.get(row.question_id, -1) for row in mine], dtype=np.int64)
    scores = its.scores(metric, protocol.adversarial)
    found = mine.scores(metric, protocol.adversarial) - (scores[places] if len(scores) else np.nan)
    kept = np.flatnonzero((places >= 0) & mine.counted(protocol) & ~np.isnan(found))
    return MetricScores(scale_of(metric) * found[kept], tuple(mine.conversations[kept]), mine.categories[kept])


def can_be_paired(metric: str) -> bool:
    """Return whether a metric has a score for each question and counts in percent."""
    return metric in METRICS and METRICS[metric].unit == "percent"


def compare_family(
    contestants: Sequence[tuple[Contestant, Contestant]], metric: str, protocol: Protocol, where: str, column: str
) -> list[Pair]:
    """Compare pairs of systems on one metric.

    Tests of the protocol's primary metric belong to the declared family and are corrected within these pairs (over
    more of them by :func:`adjust_family`); those of any other metric explore.

    Args:
        contestants: system and what it is compared with.
        metric: name in ``scores.jsonl``.
        protocol: which questions count, and how.
        where: place of the family, for the reader.
        column: heading of the metric, for the reader.

    Returns:
        One entry per pair that shares a question.
    """
    found = []
    for system, baseline in contestants:
        differences = paired_differences(system.rows, baseline.rows, metric, protocol)
        if len(differences.values):
            parts = differing_parts(system.run, baseline.run) if system.run and baseline.run else ()
            mean = mean_rule(system.rows, protocol)
            found.append((system.label, baseline.label, compare_paired(differences, mean), parts))
    explores = metric != protocol.primary
    return adjust_family(
        [Pair(where, name, other, column, result, None, parts, explores) for name, other, result, parts in found]
    )


def adjust_family(pairs: Sequence[Pair]) -> list[Pair]:
    """Apply Holm's correction over all tests of the declared family; exploratory ones stay as they are."""
    family = [pair for pair in pairs if not pair.exploratory and pair.result.p_value is not None]
    adjusted = dict(zip(map(id, family), holm([pair.result.p_value or 0.0 for pair in family]), strict=True))
    return [replace(pair, adjusted=adjusted.get(id(pair))) for pair in pairs]
