"""Each system against one of them on the questions that both answered."""

from collections.abc import Sequence
from dataclasses import replace

from eval.loaders.question_types import ADVERSARIAL
from eval.results.compare.columns import ANSWERABLE, columns
from eval.results.compare.rows import SystemRow, answerable_alone, lead_metric, recall_metric
from eval.results.compare.seeds import paired_rows
from eval.results.stored_run import StoredRun
from eval.results.tables.pairs import Contestant, Pair, compare_family
from eval.scoring.protocols import Protocol


def compare_with(baseline: SystemRow, rows: Sequence[SystemRow], protocol: Protocol) -> list[Pair]:
    """Compare every other system with one of them on the lead metric and on evidence recall.

    Where no run has answers, evidence recall is the primary metric, whatever the protocol's is.

    Where the protocol's F1 counts questions that have no answer, F1 without them is tested, too: its tests are a
    family of their own in Holm's correction.

    Systems that ran with several seeds are paired by seed: question by question, over the seeds that both have.

    Returns:
        One entry per metric and pair that shares a question.
    """
    families = declared_tests([row.run for row in rows], protocol)
    return [pair for column, (metric, rule) in families.items() for pair in tests(baseline, rows, column, metric, rule)]


def tests(baseline: SystemRow, rows: Sequence[SystemRow], column: str, metric: str, rule: Protocol) -> list[Pair]:
    """Test every other system on the same data against the baseline, as one family; see :func:`compare_family`."""
    others = [
        _contestants(row, baseline) for row in rows if row is not baseline and on_the_same_data(row.run, baseline.run)
    ]
    return compare_family(others, metric, rule, "", column)


def declared_tests(runs: Sequence[StoredRun], protocol: Protocol) -> dict[str, tuple[str, Protocol]]:
    """Return the heading of each family of tests, its metric, and how questions count in it."""
    column, metric = lead_metric(runs, protocol)
    recall, recalled = recall_metric(runs)
    heading = next(column.heading for column in columns() if column.name == recall)
    if metric == recalled:
        return {heading: (metric, replace(protocol, primary=metric))}
    found = {column: (metric, protocol)}
    unanswerable = any(run.asks_unanswerable for run in runs)
    if (
        unanswerable and column == "F1" and protocol.counts(ADVERSARIAL)
    ):  # elsewhere they would be the tests of F1 once more
        found[ANSWERABLE] = (metric, answerable_alone(protocol))
    return {**found, heading: (recalled, protocol)}


def on_the_same_data(run: StoredRun, other: StoredRun) -> bool:
    """Return whether two runs have one data set; a constant knows the file alone, which several data sets may read.

    Of one name may be data of two folders (``dataset=custom``), whose questions have the same ids.
    """
    return run.data_sha256 == other.data_sha256 and (bool(run.floor or other.floor) or run.dataset == other.dataset)


def by_data(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Sort runs into those on one data set, in their order; constants join each data set of their file."""
    firsts: list[StoredRun] = []
    for run in sorted(runs, key=lambda run: run.floor):
        if not any(on_the_same_data(run, first) for first in firsts):
            firsts.append(run)
    return [[run for run in runs if on_the_same_data(run, first)] for first in firsts]


def _contestants(row: SystemRow, baseline: SystemRow) -> tuple[Contestant, Contestant]:
    ours, theirs = paired_rows(row.repeats, baseline.repeats)
    return Contestant(row.label, ours, row.run), Contestant(baseline.label, theirs, baseline.run)
