"""The page's first view: which memory to use, whether the difference is real, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from eval.funnel.stages import run_protocol
from eval.metrics.registry import is_share
from eval.report.groups import Scored, scored
from eval.report.scores import PAGE_DECIMALS
from eval.report.verdict import Side, verdict
from eval.scoring.protocols import Adversarial
from eval.scoring.several import Several, SystemDifference, compare_all, tiers
from eval.tables.costs import turns_written
from eval.tables.judges import judge_faults
from eval.tables.run_groups import RunGroup
from eval.tables.stored import StoredRun
from eval.tables.terms import unlike_settings
from memsys.vocabulary import Json

#: Treatments of category 5, which is left out unless the reader of the page says otherwise.
ADVERSARIAL_TREATMENTS: tuple[Adversarial, ...] = (
    "exclude",
    *(way for way in get_args(Adversarial) if way != "exclude"),
)


@dataclass(frozen=True, slots=True)
class Board:
    """What a group's boards need.

    Attributes:
        runs: all runs.
        labels: name of each of the group's runs.
        costs: figures of each run, ``tokens`` among them.
        dataset: name of the group's data set.
    """

    runs: Sequence[StoredRun]
    labels: Mapping[int, str]
    costs: Sequence[dict[str, Any]]
    dataset: str


def group_answer(group: RunGroup, board: Board, metrics: Sequence[str]) -> Json:
    """One group: its runs, and a board per metric and treatment of category 5."""
    boards: dict[str, dict[str, Json]] = {}
    for metric in metrics:
        for treatment in ADVERSARIAL_TREATMENTS:
            found = scored(board.runs, group, metric, treatment)
            if found is not None:
                boards.setdefault(metric, {})[treatment] = _board(found, group, board, metric, treatment)
    return {
        "dataset": board.dataset,
        "backbone": board.runs[group.members[0]].backbone,
        "prompts": board.runs[group.members[0]].prompts,
        "reader": board.runs[group.members[0]].asked_by,
        "labels": {str(number): board.labels[number] for number in group.members},
        "systems": list(group.systems),
        "references": list(group.references),
        "common": len(group.questions),
        "asked": group.asked,
        "conversations": len(board.runs[group.members[0]].conversations),
        "boards": boards,
    }


def _board(found: Scored, group: RunGroup, board: Board, metric: str, treatment: str) -> Json:
    ranked = [number for number in found.runs if number in group.systems]
    primary = run_protocol(board.runs[group.members[0]]).primary
    decides = "" if (metric, treatment) == (primary, ADVERSARIAL_TREATMENTS[0]) else _decides(primary, group, board)
    several = compare_all(found.values, [row.conversation_id for row in found.rows], tested=len(ranked))
    own = [one for one in several.differences if one.second < len(ranked)]
    levels = tiers(several.means[: len(ranked)], own)
    fault = judge_faults([board.runs[number] for number in found.runs]).get(metric, "")
    sides = [
        Side(board.labels[number], several.means[i], number in group.systems, _tokens(board, number))
        for i, number in enumerate(found.runs)
    ]
    return {
        "sentence": verdict(sides, several, _setting(found, group, board, metric, treatment), fault, primary=decides),
        "fault": fault,
        "questions": several.questions,
        "by": several.by,
        "runs": list(found.runs),
        "figures": _figures(several, share=is_share(metric)),
        "tiers": levels,
        "differences": [_difference(one) for one in several.differences],
    }


def _decides(primary: str, group: RunGroup, board: Board) -> str:
    """Name the comparison that the page decides by: the protocol's metric, questions without an answer left out."""
    unanswerable = any(board.runs[number].asks_unanswerable for number in group.members)
    return f"{primary}, questions without an answer left out" if unanswerable else primary


def _tokens(board: Board, number: int) -> float | None:
    """Tokens per question, those of writing the memory spread over the questions asked of it."""
    run, costs = board.runs[number], board.costs[number]
    if "tokens" not in costs:
        return None
    return float(costs["tokens"]) + float(costs.get("write", 0.0)) * turns_written(run.summary) / run.asked


def _setting(found: Scored, group: RunGroup, board: Board, metric: str, treatment: str) -> str:
    count = len(found.rows)
    left_out = ", those without an answer left out" if treatment == "exclude" and count < len(group.questions) else ""
    runs = "1 run" if len(found.runs) == 1 else f"all {len(found.runs)} runs"
    prompts = board.runs[group.members[0]].prompts
    asked = f" with {prompts}" if prompts else ""
    unlike = unlike_settings([board.runs[number] for number in found.runs])
    alone = f"; {unlike}, so a difference need not be the memory's alone" if unlike else ""
    return f"{metric} on {board.dataset}{asked}, {count} questions that {runs} answered{left_out}{alone}"


def _figures(several: Several, *, share: bool) -> list[Json]:
    """Mean of each system with the ends of its interval; those of a share are shown from 0 to 100."""
    return [
        [
            round(mean, PAGE_DECIMALS),
            *(round(min(100.0, max(0.0, end)) if share else end, PAGE_DECIMALS) for end in ends or ()),
        ]
        for mean, ends in zip(several.means, several.intervals, strict=True)
    ]


def _difference(one: SystemDifference) -> Json:
    rounded = [None if value is None else round(value, PAGE_DECIMALS) for value in (one.value, one.low, one.high)]
    return [one.first, one.second, *rounded, one.p_value, one.gained, one.lost, one.separated]
