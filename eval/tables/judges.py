"""Judges of several runs: what is known of each, and whether they asked alike."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.judge.people import people_text
from eval.judge.probe import RECORDED, judge_name, probe_text
from eval.tables.stored import StoredRun


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """Runs that one judge graded with the same settings and model.

    Attributes:
        metric: name of its scores, ``judge_<judge>_<backbone>``.
        text: judge, backbone, and how it did on answers whose grade is known.
        runs: ids of the runs.
    """

    metric: str
    text: str
    runs: frozenset[str]


def judge_groups(runs: Sequence[StoredRun]) -> list[JudgeGroup]:
    """Judges of some runs, by name. A name stands twice where its settings or its model differ between runs."""
    members: dict[tuple[str, str], set[str]] = {}
    texts: dict[tuple[str, str], str] = {}
    for run in runs:
        for metric, entry in _judges(run).items():
            key = metric, json.dumps(entry.get("identity"), sort_keys=True)
            members.setdefault(key, set()).add(run.run_id)
            texts.setdefault(key, _text(entry))
    return [JudgeGroup(key[0], texts[key], frozenset(members[key])) for key in sorted(members)]


def _text(entry: Mapping[str, Any]) -> str:
    known = [judge_name(entry), probe_text(entry["probe"])]
    return "; ".join(known if entry["judge"] == RECORDED else [*known, people_text(entry)])


def judge_texts(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Name of each judge's scores -> what is known of it; of several alike in name the first."""
    found: dict[str, str] = {}
    for group in judge_groups(runs):
        found.setdefault(group.metric, group.text)
    return found


def unlike_judges(runs: Sequence[StoredRun]) -> list[str]:
    """Names of judges whose verdicts on these runs cannot be ranked: they asked or sampled otherwise."""
    names = [group.metric for group in judge_groups(runs)]
    return sorted({name for name in names if names.count(name) > 1})


def _judges(run: StoredRun) -> dict[str, Any]:
    return run.summary.get("judges") or {}
