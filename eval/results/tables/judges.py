"""Judges of several runs: what is known of each, whether they asked alike, and which are left out."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.results.stored_run import StoredRun
from eval.scoring.beam import order_columns, rests_on_pairs, score_columns
from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, JudgeQuality, judge_quality, order_quality, publisher


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """Runs that one judge graded with the same settings and model.

    Attributes:
        metric: name of its scores, ``judge_<judge>_<backbone>``.
        text: judge, backbone, and how it did on answers whose grade is known.
        runs: ids of the runs.
        fault: why its verdicts are uninformative; empty for a judge that beats one verdict for all.
        order: what is known of how it tells events apart, where it aligned orders itself.
    """

    metric: str
    text: str
    runs: frozenset[str]
    fault: str = ""
    order: JudgeQuality | None = None

    def of(self, column: str) -> "JudgeGroup":
        """Return the group with another of its columns."""
        if self.order is None or not rests_on_pairs(column):
            return replace(self, metric=column)
        faults = "; ".join(fault for fault in (self.fault, self.order.fault) if fault)
        return replace(self, metric=column, text=f"{self.text}; events: {self.order.text}", fault=faults)


def judge_groups(runs: Sequence[StoredRun]) -> list[JudgeGroup]:
    """Return the judges of some runs by name; a name occurs twice where its settings or model differ."""
    members: dict[tuple[str, str], set[str]] = {}
    qualities: dict[tuple[str, str], JudgeQuality] = {}
    orders: dict[tuple[str, str], dict[str, JudgeQuality]] = {}
    for run in runs:
        for metric, entry in _judges(run).items():
            key = metric, json.dumps([entry.get("identity"), publisher(entry, run.record)], sort_keys=True)
            members.setdefault(key, set()).add(run.run_id)
            qualities.setdefault(key, _quality(run, entry))
            if (order := order_quality(entry)) is not None:
                orders.setdefault(key, {})[entry["order"]["prompt_sha256"]] = order
    return [
        JudgeGroup(key[0], qualities[key].text, frozenset(members[key]), qualities[key].fault, _one(orders.get(key)))
        for key in sorted(members)
    ]


def _one(orders: Mapping[str, JudgeQuality] | None) -> JudgeQuality | None:
    """Return the quality of one prompt; orders that several prompts aligned cannot be ranked together."""
    if not orders or len(orders) == 1:
        return next(iter(orders.values())) if orders else None
    name = next(iter(orders.values())).name
    fault = f"{name} was asked of events with {len(orders)} prompts in these runs"
    return JudgeQuality(name, fault, "", fault)


def _quality(run: StoredRun, entry: Mapping[str, Any]) -> JudgeQuality:
    return judge_quality(entry, publisher(entry, run.record), run.dataset)


def without_unmeasured(runs: Sequence[StoredRun]) -> tuple[list[StoredRun], list[str]]:
    """Leave out verdicts of judges that were never measured on answers whose grade is known.

    Returns:
        The runs without them, and for each judge that was left out a line that says how to measure or show it.
    """
    shown: list[StoredRun] = []
    notes: dict[str, str] = {}
    for run in runs:
        qualities = {metric: _quality(run, entry) for metric, entry in _judges(run).items()}
        hidden = {metric: one for metric, one in qualities.items() if one.missing}
        orders = {metric: order_quality(entry) for metric, entry in _judges(run).items()}
        unknown = {metric: one for metric, one in orders.items() if one is not None and one.missing}
        shown.append(_without(run, hidden.keys(), unknown.keys()) if hidden or unknown else run)
        notes |= {
            one.name: f"left out: {one.name}; this judge was not measured on answers of known grade: "
            f"{one.missing}; {SHOW_ANYWAY} shows its verdicts"
            for one in hidden.values()
        }
        notes |= {
            f"{one.name}, orders": (
                f"left out: orders of events aligned by {one.name}; its alignment of events was not measured: "
                f"{one.missing}; {SHOW_ANYWAY} shows them"
            )
            for metric, one in unknown.items()
            if metric not in hidden
        }
    return shown, list(notes.values())


def _without(run: StoredRun, columns: Collection[str], orders: Collection[str]) -> StoredRun:
    """Return a run without some judges, and without what others aligned."""
    judges = {
        name: {key: value for key, value in entry.items() if key != "order"} if name in orders else entry
        for name, entry in _judges(run).items()
        if name not in columns
    }
    hidden = {*columns, *(score for column in columns for score in _all_columns(column))}
    hidden |= {score for column in orders for score in _all_columns(column) if rests_on_pairs(score)}
    rows = [
        replace(row, metrics={name: value for name, value in row.metrics.items() if name not in hidden})
        for row in run.rows
    ]
    return replace(run, summary={**run.summary, "judges": judges}, rows=tuple(rows))


def judge_faults(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Name of each judge's scores -> why they are uninformative; judges that beat one verdict for all are absent."""
    groups = judge_groups(runs)
    held = {name for run in runs for name in run.columns.names} if groups else set()
    found: dict[str, str] = {}
    for group in groups:
        scores = [name for name in _all_columns(group.metric) if name in held]
        found |= {name: fault for name in (group.metric, *scores) if (fault := group.of(name).fault)}
    return found


def _all_columns(judge: str) -> tuple[str, ...]:
    """Return the columns that a judge's verdicts may give besides its own."""
    return *score_columns(judge), *order_columns(judge)


def judge_texts(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Return the name of each judge's scores -> what is known of it; of several alike in name the first."""
    found: dict[str, str] = {}
    for group in judge_groups(runs):
        found.setdefault(group.metric, group.text)
    return found


def score_texts(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Name of each score that BEAM's scores give with a judge -> what is known of that judge; of several the first."""
    found: dict[str, str] = {}
    for group in judge_groups(runs):
        for name in score_columns(group.metric):
            found.setdefault(name, group.of(name).text)
    return found


def unlike_judges(runs: Sequence[StoredRun]) -> list[str]:
    """Return the names of judges whose verdicts on these runs cannot be ranked: they asked or sampled otherwise."""
    names = [group.metric for group in judge_groups(runs)]
    return sorted({name for name in names if names.count(name) > 1})


def _judges(run: StoredRun) -> dict[str, Any]:
    return run.summary.get("judges") or {}
