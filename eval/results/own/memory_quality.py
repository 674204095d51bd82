"""Memory quality: the funnel of the evidence, and what is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.commands.rendering.table import DASH, Cell, Table, columns, figure, records
from eval.results.compare.rows import f1_metric, labels
from eval.results.own.rankings import ranking_remarks
from eval.results.own.sizes import StoredSizes, characters_per_token, remarks, stored_sizes
from eval.results.own.stages import (
    REACHES,
    STAGES,
    EvidenceFunnel,
    MeanScore,
    Reach,
    Stage,
    evidence_funnels,
    run_protocol,
)
from eval.results.stored_run import StoredRun
from eval.results.tables.groups import comparable_runs
from eval.results.tables.page import Section, TablePage

NAME = "memory_quality"

PURPOSE = (
    "how far the gold evidence got from the memory to the answer, and answer scores by the stage at which it was lost"
)
DEFINITIONS = (
    "n: questions with gold evidence. A share is taken over the gold turns of a question (each turn once) and averaged "
    "over these questions; a system's first line excludes question kinds that its protocol does not count",
    "evidence is matched by lineage: an entry of the memory names its source turns, through every rewrite and merge "
    "(a note of A-Mem or CLAG those of its content only, not the turn behind a new context or new tags); whether its "
    "text still contains what the turn said is not checked, so entries made from many turns count for many. Turns per "
    "entry, and distinct source turns of the memories in one context, show how coarse this is",
    "stored: share of the gold turns that are a source of some entry; R@5, R@10: of one of the first 5 or 10 "
    "retrieved memories; in context: of a memory with its text in the answer prompt. Retrieved memories that did not "
    "fit there do not count; memories shown without being retrieved do (linked notes of A-Mem and CLAG, recent pages "
    "and facts of MemoryOS), except in runs of versions up to 0.3.0, which did not store them; for a text written "
    "from the memories (GAM) the share is unknown",
    "F1: token F1 of the run's protocol, percent, plain mean over the questions; next to it F1 of the questions with "
    "all gold turns stored, in the first 5 or 10 retrieved memories, or in the context, with the number of such "
    "questions in brackets (a question counts at every stage that it reached), then of those with part of the gold "
    "turns in the context, none in the context but some stored, and none stored",
    "entries: units that the memory's search can return or its context is built from, as defined in the system's file "
    "entries.yaml; per turn ingested. Tokens are estimated: characters of all entry texts at the characters per token "
    "of all contexts of the group (its backbone's tokenizer); empty if no context was counted",
    "repeated: entries with the same main text as an earlier one of the same kind and conversation; outdated: entries "
    "from a turn that the data set marks as overruled, and not from the turn that replaces it",
    f"{DASH}: not in the run's files; the reason is below its table",
)
_REACH_HEADINGS: dict[Reach, str] = {
    "whole": "F1, all in context",
    "part": "F1, part in context",
    "stored": "F1, stored only",
    "not stored": "F1, not stored",
}
_STAGE_HEADINGS: dict[Stage, str] = {
    "stored": "F1, all stored",
    "at_5": "F1, all in first 5",
    "at_10": "F1, all in first 10",
}
_SHARES = ("system", "questions", "n", "stored", "R@5", "R@10", "in context")
_SCORES = ("F1", *_STAGE_HEADINGS.values(), *_REACH_HEADINGS.values())
_SIZE_HEADINGS = (
    "system", "conversations", "turns", "entries", "entries per turn", "tokens per turn", "turns per entry",
    "turns in context", "repeated", "outdated", "entries by kind",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SystemQuality:
    """One run: its name, how far its evidence came (nothing where that is not known), what it stores, and remarks."""

    label: str
    run: StoredRun
    funnels: Sequence[EvidenceFunnel]
    sizes: StoredSizes | None
    remarks: Sequence[str]


@dataclass(frozen=True, slots=True)
class QualityGroup:
    """Runs on the same questions with the same backbone."""

    title: str
    key: str
    systems: tuple[SystemQuality, ...]


def quality_groups(runs: Sequence[StoredRun]) -> list[QualityGroup]:
    """Sort runs that have or could have a memory by data set, backbone, prompts and questions; constants have none.

    Nor are those that time questions here, which ask few of them.
    """
    found = comparable_runs(run for run in runs if not run.floor and not run.times_questions)
    return [
        QualityGroup(group.title("backbone "), group.key, _systems(group.runs))
        for group in sorted(found, key=lambda group: (group.setting, group.asked))
    ]


def _systems(runs: Sequence[StoredRun]) -> tuple[SystemQuality, ...]:
    """Return the systems; runs of one backbone share a rate of characters per token."""
    rate = characters_per_token(runs)
    return tuple(
        SystemQuality(label, run, evidence_funnels(run), stored_sizes(run, rate), remarks(run))
        for run, label in zip(runs, labels(runs), strict=True)
    )


def quality_page(groups: Sequence[QualityGroup]) -> TablePage:
    """Return two tables of every group: how far the evidence came, and what is stored."""
    sections = [
        Section(
            group.title,
            group.key,
            [evidence_table(group), size_table(group)],
            [(one.label, one.run) for one in group.systems],
        )
        for group in groups
    ]
    return TablePage(NAME, "Memory quality without a reader", (PURPOSE, *DEFINITIONS), sections, _data(groups))


def evidence_table(group: QualityGroup) -> Table:
    """Return the funnel of every system: a row over all questions, then one a category; F1 where one has answers."""
    headings = (*_SHARES, *_SCORES) if _is_scored(group) else _SHARES
    rows: list[list[Cell]] = []
    for one in group.systems:
        cells = (_cells("" if place else one.label, funnel) for place, funnel in enumerate(one.funnels))
        rows += [own[: len(headings)] for own in cells]
        rows += [] if one.funnels else [[one.label, "all", *[None] * (len(headings) - 2)]]
    return Table("Evidence", columns(headings, left=2), rows, _notes(group), label="evidence")


def _is_scored(group: QualityGroup) -> bool:
    return any(funnel.score is not None for one in group.systems for funnel in one.funnels)


def _notes(group: QualityGroup) -> list[str]:
    """Return the remarks with the systems that they hold for, and the metric behind F1."""
    by_text: dict[str, list[str]] = {}
    for one in group.systems:
        for text in one.remarks:
            by_text.setdefault(text, []).append(one.label)
    everyone = len(group.systems)
    notes = [
        f"{'all systems' if len(names) == everyone > 1 else ', '.join(names)}: {text}"
        for text, names in by_text.items()
    ]
    rankings = [f"{one.label}: {text}" for one in group.systems for text in ranking_remarks(one.run)]
    unanswered = [f"{one.label}: {one.run.unanswered}" for one in group.systems if one.run.unanswered]
    metrics = ", ".join(sorted({_metric(one.run) for one in group.systems}))
    return [*notes, *rankings, *unanswered, *([f"F1 is {metrics}"] if _is_scored(group) else [])]


def _metric(run: StoredRun) -> str:
    protocol = run_protocol(run)
    return f"{f1_metric(protocol)} (protocol {protocol.name})"


def _cells(label: str, funnel: EvidenceFunnel) -> list[Cell]:
    shares = (funnel.stored, funnel.at_5, funnel.at_10, funnel.shown, funnel.score)
    complete = [_score(funnel.complete[stage]) if stage in funnel.complete else DASH for stage in STAGES]
    return [label, funnel.label, funnel.questions, *shares, *complete, *_reach_cells(funnel)]


def _reach_cells(funnel: EvidenceFunnel) -> list[str]:
    """Return the scores by reach; where the store is unknown, all not in the context share one cell."""
    reached = funnel.reached
    if not reached:
        return [DASH] * len(_REACH_HEADINGS)
    if "not in context" in reached:
        joint = f"{_score(reached['not in context'])}, stored or not"
        return [_score(reached.get("whole")), _score(reached.get("part")), joint, DASH]
    return [_score(reached.get(reach)) for reach in _REACH_HEADINGS]


def _score(found: MeanScore | None) -> str:
    return "(0)" if found is None or not found.questions else f"{figure(found.score)} ({found.questions})"


def size_table(group: QualityGroup) -> Table:
    """Return what every system stores."""
    rows = [[one.label, *_size_cells(one.sizes)] for one in group.systems]
    return Table("Stored", columns(_SIZE_HEADINGS), rows, label="stored")


def _size_cells(sizes: StoredSizes | None) -> list[Cell]:
    if sizes is None:
        return [None] * (len(_SIZE_HEADINGS) - 1)
    return [
        sizes.conversations,
        f"{sizes.turns:,}",
        f"{sizes.total:,}",
        figure(_per(sizes.total, sizes.turns), 2),
        _per(sizes.tokens, sizes.turns),
        _per(sizes.origins, sizes.total),
        sizes.context_turns,
        _part(sizes.duplicates, sizes.total),
        _part(sizes.overruled, sizes.total),
        ", ".join(f"{count:,} {kind}" for kind, count in sizes.entries.items()),
    ]


def _per(value: float | None, count: int) -> float | None:
    return None if value is None or not count else value / count


def _part(count: int | None, total: int) -> str:
    if count is None:
        return DASH
    return f"{count:,} ({100 * count / total:.1f} %)" if total else str(count)


def _data(groups: Sequence[QualityGroup]) -> Table:
    """Return one row per run and category; what is not known is empty."""
    reached = [f"{part} {reach}" for reach in (*map(_complete, STAGES), *REACHES) for part in ("questions", "score")]
    names = (
        "run", "system", "dataset", "backbone", "protocol", "metric", "questions", "n", "stored", "recall@5",
        "recall@10", "in_context", "score", *reached, "conversations", "turns", "entries", "tokens", "characters",
        "duplicates", "stale", "origins", "context_turns", "remarks",
    )  # fmt: skip
    return records(names, (values for group in groups for one in group.systems for values in _csv_rows(one)))


def _csv_rows(one: SystemQuality) -> list[dict[str, object]]:
    protocol = run_protocol(one.run)
    about: dict[str, object] = {
        "run": one.run.run_id, "system": one.label, "dataset": one.run.dataset, "backbone": one.run.backbone,
        "protocol": protocol.name, "metric": f1_metric(protocol),
    }  # fmt: skip
    first = {**_csv_sizes(one.sizes), "remarks": "; ".join(one.remarks)}
    if not one.funnels:
        return [{**about, "questions": "all", **first}]
    return [
        {**about, **_csv_funnel(funnel), **(first if not place else {})} for place, funnel in enumerate(one.funnels)
    ]


def _csv_funnel(funnel: EvidenceFunnel) -> dict[str, object]:
    found: dict[str, object] = {
        "questions": funnel.label, "n": funnel.questions, "stored": funnel.stored, "recall@5": funnel.at_5,
        "recall@10": funnel.at_10, "in_context": funnel.shown, "score": funnel.score,
    }  # fmt: skip
    scores: dict[str, MeanScore] = {_complete(stage): score for stage, score in funnel.complete.items()}
    scores.update({str(reach): score for reach, score in funnel.reached.items()})
    for place, score in scores.items():
        found |= {f"questions {place}": score.questions, f"score {place}": score.score}
    return found


def _complete(stage: Stage) -> str:
    return f"all {stage}"


def _csv_sizes(sizes: StoredSizes | None) -> dict[str, object]:
    if sizes is None:
        return {}
    return {
        "conversations": sizes.conversations, "turns": sizes.turns, "entries": sizes.total, "tokens": sizes.tokens,
        "characters": sizes.characters, "duplicates": sizes.duplicates, "stale": sizes.overruled,
        "origins": sizes.origins, "context_turns": sizes.context_turns,
    }  # fmt: skip
