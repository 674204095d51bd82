"""Recall of updated facts: newest fact stored, found and shown, overruled ones among the hits.

The figures of :mod:`eval.metrics.updates`, by lineage, for data sets that say which turns are overruled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.commands.rendering.table import DASH, Cell, Table, columns, figure, records
from eval.metrics.updates import IN_CONTEXT, UPDATE_METRICS
from eval.results.own.memory_quality import QualityGroup, SystemQuality
from eval.results.own.stages import MeanScore, mean_score, run_protocol
from eval.results.stored_run import StoredRun, category_names
from eval.results.tables.page import Section, TablePage
from eval.scoring.columns import ScoreColumns
from eval.scoring.estimates import plain_mean

NAME = "knowledge_updates"

LEGEND = (
    "n: questions with newest facts that overrule older ones; all columns except the last are over these",
    "newest stored, retrieved, in context: share of these questions with every newest fact a source of some entry, of "
    "the first ten hits, of the hits in the context (hits cut by a limit do not count); by lineage, so an entry that "
    "merged old and new facts counts, whatever its text kept",
    "staleness: share of the first ten hits from an overruled fact on any subject, and not from the fact that "
    "replaces it; of the question: share from a fact that the question's newest facts overrule, and from none of "
    "these; an entry made from a batch of facts counts as from each of them, so systems that extract from batches "
    "(SAGE, Mem0) show more staleness than their texts may contain",
    "answer: the protocol's primary metric, percent; next to it the same with all newest facts in the context and "
    "without, with the number of such questions in brackets",
    "overruled entries: share of all entries from an overruled fact and not from the fact that replaces it",
    f"{DASH}: not in the run's files, or nothing was asked or retrieved",
)
_HEADINGS = (
    "system", "questions", "n", "newest stored", "newest retrieved", "newest in context", "staleness",
    "staleness of the question", "answer", "answer, newest in context", "answer, newest not in context",
    "overruled entries",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """Some questions of one run.

    Attributes:
        label: which questions.
        questions: how many have newest facts that overrule others.
        shares: metric of :mod:`eval.metrics.updates` -> mean in percent; ``None`` where it is not known.
        answer: of all of them.
        shown: of those with every newest fact in the context.
        unshown: of the others.
    """

    label: str
    questions: int
    shares: dict[str, float | None]
    answer: MeanScore
    shown: MeanScore
    unshown: MeanScore


def update_groups(groups: Sequence[QualityGroup]) -> list[QualityGroup]:
    """Return the groups of which some run was asked for facts that overrule others."""
    return [group for group in groups if any(map(_updated, (one.run for one in group.systems)))]


def _updated(run: StoredRun) -> ScoreColumns:
    return run.columns.with_any(UPDATE_METRICS)


def update_lines(run: StoredRun) -> list[UpdateLine]:
    """Return the figures over all questions with an update, then over each category; empty if there is none."""
    rows = _updated(run)
    found = [_line("all", rows, run)] if rows else []
    for category, name in category_names(run).items():
        own = rows.only(rows.categories == category)
        found += [_line(name, own, run)] if own else []
    return found


def _line(label: str, rows: ScoreColumns, run: StoredRun) -> UpdateLine:
    shares = {name: plain_mean(rows.column(name)).value for name in UPDATE_METRICS}
    shown = rows.column(IN_CONTEXT)
    return UpdateLine(
        label,
        len(rows),
        {name: None if share is None else 100 * share for name, share in shares.items()},
        _answer(rows, run),
        _answer(rows.only(shown == 1), run),
        _answer(rows.only(shown == 0), run),
    )


def _answer(rows: ScoreColumns, run: StoredRun) -> MeanScore:
    protocol = run_protocol(run)
    return mean_score(rows, protocol.primary, protocol)


def updates_page(groups: Sequence[QualityGroup]) -> TablePage:
    """Return a table of every group: a row of each system over all questions, then one a category."""
    sections = [
        Section(group.title, group.key, [update_table(group)], [(one.label, one.run) for one in group.systems])
        for group in groups
    ]
    return TablePage(NAME, "Facts that later ones overrule", LEGEND, sections, _data(groups))


def update_table(group: QualityGroup) -> Table:
    """Return the figures of every system of a group."""
    rows = []
    for one in group.systems:
        for place, line in enumerate(update_lines(one.run)):
            rows.append([*_cells("" if place else one.label, line), None if place else _overruled(one)])
    metrics = ", ".join(sorted({run_protocol(one.run).primary for one in group.systems}))
    return Table("Updates", columns(_HEADINGS, left=2), rows, [f"answer is {metrics}"])


def _cells(label: str, line: UpdateLine) -> list[Cell]:
    parts = [f"{figure(part.score)} ({part.questions})" for part in (line.shown, line.unshown)]
    return [label, line.label, line.questions, *line.shares.values(), line.answer.score, *parts]


def _overruled(one: SystemQuality) -> str | None:
    sizes = one.sizes
    return None if sizes is None or sizes.overruled is None else f"{sizes.overruled:,} of {sizes.total:,}"


def _data(groups: Sequence[QualityGroup]) -> Table:
    """Return one row per run and category; what is not known is empty."""
    answers = ("answer", "answer_newest_shown", "answer_newest_not_shown")
    names = (
        "run", "system", "dataset", "backbone", "questions", "n", *UPDATE_METRICS, "metric",
        *(name for part in answers for name in (part, f"n_{part}")), "entries", "entries_overruled",
    )  # fmt: skip
    systems = (one for group in groups for one in group.systems)
    return records(names, (_csv_row(one, line, answers) for one in systems for line in update_lines(one.run)))


def _csv_row(one: SystemQuality, line: UpdateLine, answers: Sequence[str]) -> dict[str, object]:
    run, sizes = one.run, one.sizes
    row: dict[str, object] = {
        "run": run.run_id, "system": one.label, "dataset": run.dataset, "backbone": run.backbone,
        "questions": line.label, "n": line.questions, **line.shares, "metric": run_protocol(run).primary,
    }  # fmt: skip
    for name, part in zip(answers, (line.answer, line.shown, line.unshown), strict=True):
        row |= {name: part.score, f"n_{name}": part.questions}
    if sizes is not None and line.label == "all":
        row |= {"entries": sizes.total, "entries_overruled": sizes.overruled}
    return row
