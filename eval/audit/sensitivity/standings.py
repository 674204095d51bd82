"""Runs on one data set side by side: the rank of each system under every definition, and over all of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePath

import numpy as np

from eval.audit.sensitivity.config import LensConfig
from eval.audit.sensitivity.ranking import RankedField, Standing, StandingsRow, rank_systems
from eval.audit.sensitivity.readings import Holdings, Section, Weights, grid, sections
from eval.loaders.registry import info_of
from eval.results.compare.rows import distinct_names
from eval.results.compare.seeds import group_repeats, with_seeds
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import unlike_settings
from eval.results.tables.judges import judge_faults, judge_texts, unlike_judges
from eval.results.tables.label_view import views
from eval.results.tables.run_groups import find_groups
from eval.results.tables.variants import label_of
from eval.scoring.columns import ScoreColumns
from eval.scoring.protocols import Protocol
from memsys.errors import RunDirectoryError


@dataclass(frozen=True, slots=True)
class Tally:
    """One system over all readings of the grid; a reference has no ranks."""

    first: float  # readings it leads; a shared lead counts its part
    best: int | None
    worst: int | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Lens:
    """Results for runs on the same part of a data set, with the same backbone and prompts.

    Attributes:
        dataset: name of the data set.
        setting: backbone and whose prompts, where the runs share them.
        systems: labels, in the order of the runs.
        runs: their ids.
        ranked: whether each is a system, and no reference that bounds what systems can do.
        questions: that all of them answered.
        covered: that each of them answered; of a constant, which answers everything, those that all answered.
        sections: lines by section title.
        tallies: over the grid, by system.
        readings: size of the grid.
        by_question: whether all questions are of one conversation, so that whether the first leads by more than chance
            is said of its questions alone.
        left_out: judges whose settings or model are not the same for all of these runs.
        labels: what to say of the labels where they are not as printed, and of questions without an answer.
        unlike: in what besides the memory some of these runs differ.
    """

    dataset: str
    setting: str
    systems: tuple[str, ...]
    runs: tuple[str, ...]
    ranked: tuple[bool, ...]
    questions: int
    covered: tuple[int, ...]
    sections: Mapping[str, tuple[StandingsRow, ...]]
    tallies: tuple[Tally, ...]
    readings: int
    by_question: bool
    left_out: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    unlike: str = ""


def compare_readings(
    runs: Sequence[StoredRun],
    config: LensConfig,
    protocols: Sequence[Protocol],
    report: Callable[[str], None] | None = None,
) -> list[Lens]:
    """Set runs side by side, one lens for each group of runs that can be compared.

    Args:
        runs: complete runs.
        config: what is wanted.
        protocols: of the papers.
        report: called with the reason for each group that has no analysis while others have one.

    Raises:
        RunDirectoryError: no run answered anything, or no group of them shares a question.
    """
    found, missing = lenses_of(runs, config, protocols)
    if not found:
        raise RunDirectoryError(
            "; ".join(missing) or "no run here holds answers; the lens compares readings of answers, not of retrievals"
        )
    if report is not None:
        for reason in missing:
            report(reason)
    return found


def lenses_of(
    runs: Sequence[StoredRun], config: LensConfig, protocols: Sequence[Protocol]
) -> tuple[list[Lens], list[str]]:
    """Analyse all groups of answering runs; a group without common questions has a reason instead.

    Runs that differ in their seed alone are one system, with the means of their scores.
    """
    found: list[Lens] = []
    missing: list[str] = []
    systems = [system.averaged for system in group_repeats([run for run in runs if not run.retrieval_only])]
    for group in lens_groups(systems):
        try:
            found.append(make_lens(group, config, protocols))
        except RunDirectoryError as error:
            missing.append(str(error))
    return found, missing


def lens_groups(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Sort answering runs into groups that can be compared, in the order given; those with most systems first.

    Runs are together that were made on the same part of the data, with the same backbone and prompts; constants join
    each group on their data. Where one memory alone was run, its backbones are what is compared.
    """
    found = [
        [runs[number] for number in sorted(group.members)]
        for group in find_groups(runs, backbones_apart=_several_memories(runs))
    ]
    with_systems = {run.data_sha256 for group in found for run in group if not run.floor}
    alone: dict[str, list[StoredRun]] = {}
    for run in runs:
        if run.floor and run.data_sha256 not in with_systems:
            alone.setdefault(run.data_sha256, []).append(run)
    return [*found, *alone.values()]


def _several_memories(runs: Sequence[StoredRun]) -> bool:
    """Return whether the group compares memories, and not backbones or settings of one."""
    return len({run.memory for run in runs if not run.floor}) > 1


def _published_counts(dataset: str) -> Mapping[int, int]:
    """Return the questions per category of the published data set; empty where its loader does not say."""
    info = info_of(dataset)
    return info.question_counts if info is not None else {}


def system_names(runs: Sequence[StoredRun]) -> list[str]:
    """Name each run by its system, and by backbone, questions and hash where that does not tell it from the others."""
    names = [_system(run) for run in runs]
    repeated = Counter(names)
    named = [f"{name}, {run.backbone}" if repeated[name] > 1 else name for name, run in zip(names, runs, strict=True)]
    return distinct_names(named, runs)


def _system(run: StoredRun) -> str:
    return f"{with_seeds(label_of(run.memory, run.record), run)}{' (no model)' if run.floor else ''}"


def make_lens(runs: Sequence[StoredRun], config: LensConfig, protocols: Sequence[Protocol]) -> Lens:
    """Set the runs of one group side by side.

    Args:
        runs: of :func:`lens_groups`.
        config: what is wanted.
        protocols: of the papers.

    Raises:
        RunDirectoryError: they share no question.
    """
    dataset = next((run.dataset for run in runs if not run.floor), runs[0].dataset)
    everyone = [run.columns for run in runs]
    shared = sorted(set(everyone[0].places).intersection(*(columns.places for columns in everyone[1:])))
    if not shared:
        raise RunDirectoryError(
            f"the runs on {dataset} have no question in common: {', '.join(run.run_id for run in runs)}"
        )
    systems = [columns.at(np.array([columns.places[name] for name in shared])) for columns in everyone]
    field = RankedField(systems, tuple(not run.reference for run in runs), _counts(dataset, config))
    unlike = unlike_judges(runs)
    judges = {name: text for name, text in judge_texts(runs).items() if name not in unlike}
    holdings = _holdings(systems, field.counts, judges, judge_faults(runs))
    crossed = [rank_systems(reading, field, sure=False) for reading in grid(config, holdings)]
    crossed = [line for line in crossed if line.questions]
    shown = sections(config, holdings, protocols)
    return Lens(
        dataset=dataset,
        setting=_setting(runs),
        systems=tuple(system_names(runs)),
        runs=tuple(run.run_id for run in runs),
        ranked=field.ranked,
        questions=len(shared),
        covered=tuple(len(shared if run.floor else rows) for run, rows in zip(runs, everyone, strict=True)),
        sections={section.title: _lines(section, field) for section in shown},
        tallies=tuple(_tally(crossed, index) for index in range(len(runs))) if crossed else (),
        readings=len(crossed),
        by_question=len(systems[0].conversation_names) == 1,
        left_out=tuple(unlike),
        labels=(*views(runs), *_unanswered(runs), *_bertscore_models(runs)),
        unlike=unlike_settings(runs) if _several_memories(runs) else "",
    )


def _bertscore_models(runs: Sequence[StoredRun]) -> list[str]:
    """Return the models of BERT-F1: papers use roberta-large, a run may have used a small one."""
    scored = [run for run in runs if run.columns.has("bert_f1")]
    names = {PurePath(str((run.meta.get("config") or {}).get("bertscore_model"))).name for run in scored}
    return [f"BERT-F1 (bert_f1) is BERTScore of {' and '.join(sorted(names))}"] if names else []


def _unanswered(runs: Sequence[StoredRun]) -> list[str]:
    return [f"{name}: {run.unanswered}" for name, run in zip(system_names(runs), runs, strict=True) if run.unanswered]


def _setting(runs: Sequence[StoredRun]) -> str:
    """Return backbone and prompts of the runs that asked a model; the backbone only if all share it."""
    asked = [run for run in runs if not run.floor]
    backbones = {run.backbone for run in asked}
    return ", ".join(filter(None, [*(backbones if len(backbones) == 1 else ()), asked[0].prompts if asked else ""]))


def _counts(dataset: str, config: LensConfig) -> Mapping[int, int]:
    return config.counts.get(dataset) or _published_counts(dataset)


def _holdings(
    systems: Sequence[ScoreColumns],
    counts: Mapping[int, int],
    judges: Mapping[str, str],
    faulty: Mapping[str, str],
) -> Holdings:
    """Return the scores that all systems have, without means that must equal another one."""
    first = systems[0]
    kinds = frozenset(row.kind for row in first)
    weights: list[Weights] = ["question"]
    if len(set(first.categories.tolist())) > 1:
        weights += ["category", "counts"] if counts else ["category"]
    if len(first.conversation_names) > 1:
        weights.append("conversation")
    held = [one.scored for one in systems]
    return Holdings(frozenset.union(*held), frozenset.intersection(*held), kinds, tuple(weights), judges, faulty)


def _lines(section: Section, field: RankedField) -> tuple[StandingsRow, ...]:
    lines = [rank_systems(reading, field) for reading in section.readings]
    return tuple(line for line in lines if line.questions)


def _tally(lines: Sequence[StandingsRow], system: int) -> Tally:
    own = [line.standings[system] for line in lines]
    ranks = [standing.rank for standing in own if standing.rank is not None]
    values = [standing.value or 0.0 for standing in own]
    first = sum(
        1 / sum(other.rank == 1 for other in line.standings)
        for line, standing in zip(lines, own, strict=True)
        if standing.rank == 1
    )
    return Tally(first, min(ranks, default=None), max(ranks, default=None), min(values), max(values))


def reversals(line: StandingsRow, reference: StandingsRow) -> tuple[int, int]:
    """Count the pairs of systems whose order is the opposite of the reference's, and those tied in one of the two.

    Systems without a value in one of them form no pair.
    """
    opposite = parted = 0
    ranked = [
        index
        for index, pair in enumerate(zip(line.standings, reference.standings, strict=True))
        if all(standing.rank is not None for standing in pair)
    ]
    for one, two in combinations(ranked, 2):
        here, there = (_sign(each.standings[one], each.standings[two]) for each in (line, reference))
        opposite += here * there < 0
        parted += (here == 0) != (there == 0)
    return opposite, parted


def _sign(one: Standing, two: Standing) -> int:
    ours, theirs = one.rank or 0, two.rank or 0
    return (ours < theirs) - (ours > theirs)
