"""Differences between runs on changed data and on their twins, over the questions that both have a value for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eval.loaders.stress import NO_TWIN
from eval.metrics.evidence import SHOWN_RECALL, TURN_RECALL
from eval.metrics.kept import KEPT_WORDS
from eval.metrics.updates import IN_CONTEXT
from eval.results.compare.rows import ComparisonEstimate, f1_metric
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.results.stress.facts import OUTDATED_SHOWN
from eval.results.tables.pairs import paired_differences
from eval.results.tables.text import fixed
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import BY_QUESTION, UnitKind

#: Name of the data as they are, among the runs of a system, and the ending of a twin's.
PLAIN, TWIN = "as it is", "_twin"
#: Measures of what is left of the gold turns, in the order of tables.
FOUND = (TURN_RECALL, SHOWN_RECALL, KEPT_WORDS)
#: Runs whose gold the change is about: what is found there says nothing of the change.
_OF_ATTACKS = ("contradicted", "withdrawn", "two_users")
#: Measures of what is in a context.
_OF_CONTEXTS = (SHOWN_RECALL, IN_CONTEXT, OUTDATED_SHOWN)
#: Behind a difference whose interval leaves out 0, by the interval's units, and its meaning.
_MARKS: Mapping[UnitKind, tuple[str, str]] = {
    "conversation": ("*", "the paired 95 % interval over conversations leaves out 0"),
    "question": (
        BY_QUESTION,
        "the paired 95 % range over the questions of the only conversation leaves out 0, which says nothing about "
        "other conversations",
    ),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference in points, over the questions that both runs have a value for.

    Attributes:
        data: name of the first run.
        against: name of the run that is subtracted.
        run: id of the first run.
        metric: of the scores.
        found: the mean of the differences, with its interval.
    """

    data: str
    against: str
    run: str
    metric: str
    found: ComparisonEstimate

    @property
    def text(self) -> str:
        """As tables show it: marked where its interval leaves out 0."""
        interval = self.found.interval
        marked = interval is not None and not interval.low <= 0 <= interval.high
        return f"{fixed(self.found.value, 1)}{_MARKS[interval.by][0] if interval and marked else ''}"


def changes(runs: Iterable[str]) -> list[str]:
    """Return the names of the changes that the recall of runs says something of."""
    return [name for name in runs if name not in (PLAIN, *_OF_ATTACKS) and not name.endswith(TWIN)]


def differences(runs: Mapping[str, StoredRun]) -> list[Difference]:
    """Return what each change of a system's data moves, then what harmless turns in place of poison cost.

    A change is compared with its twin, or with the data as they are where these are the twin.
    """
    pairs: list[tuple[str, str, Sequence[str]]] = [(name, _against(name), FOUND) for name in changes(runs)]
    if PLAIN in runs:
        pairs.append((PLAIN, f"poison{TWIN}", (*FOUND, f1_metric(run_protocol(runs[PLAIN])))))
    return [
        Difference(name, against, runs[name].run_id, metric, found)
        for name, against, metrics in pairs
        if against in runs
        for metric in metrics
        if (found := _difference(runs[name], runs[against], metric)) is not None
    ]


def _against(name: str) -> str:
    return PLAIN if name.startswith("noise") or name in NO_TWIN else f"{name}{TWIN}"


def _difference(run: StoredRun, other: StoredRun, metric: str) -> ComparisonEstimate | None:
    if not (is_measured(run, metric) and is_measured(other, metric)):
        return None
    found = mean_of_scores(paired_differences(run.rows, other.rows, metric, run_protocol(run)))
    return None if found is None else ComparisonEstimate(found.value, found.interval, questions=found.questions)


def is_measured(run: StoredRun, metric: str) -> bool:
    """Return whether a metric says something of a run: what is in a context, where that says more than the hits."""
    return metric not in _OF_CONTEXTS or run.shows_contexts


def mark_notes(shown: Iterable[Difference]) -> list[str]:
    """Return what the marks of some differences mean, or that none is marked; nothing where none has an interval."""
    known = [one for one in shown if one.found.interval is not None]
    marks = [f"{mark} {meaning}" for mark, meaning in _MARKS.values() if any(one.text.endswith(mark) for one in known)]
    if not known:
        return []
    said = "; ".join(marks) or "no paired 95 % interval of a difference leaves out 0"
    return [f"{said}; not corrected for the number of differences"]
