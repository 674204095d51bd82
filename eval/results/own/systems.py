"""Each run on one line: score, how far its evidence came, calls and tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from eval.commands.rendering.table import DASH, Cell, Column, Table, columns
from eval.results.compare.rows import answer_metric, answerable_alone
from eval.results.own.memory_quality import QualityGroup, SystemQuality
from eval.results.own.stages import mean_score, weighted_protocol
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import unlike_settings
from eval.results.tables.costs import construction_totals, read_totals, turns_written
from eval.results.tables.page import Section, TablePage
from eval.scoring.protocols import Protocol

NAME = "all_systems"

LEGEND = (
    "all runs, each seed separately, except constant answers and latency runs. References come first; they show what "
    "is possible and are not ranked",
    "score: F1, or the primary metric of a protocol without F1, percent, as the run's protocol defines and averages it "
    "(some count the false answer to an unanswerable question as correct); answerable: without the unanswerable "
    "questions. Systems are sorted by score, or by R@10 for retrieval-only runs",
    "stored, R@5, R@10, in context: share of the gold turns that are sources of the memory's entries, of the first 5 "
    "or 10 retrieved memories, and of those in the answer prompt; over the questions with gold evidence that the "
    "protocol counts. memory_quality.md has the definitions, and scores by the stage at which evidence was lost",
    "calls and tokens (prompts and replies): per turn for building the memory, per question for retrieving and "
    "answering; cached replies and retries are included (costs.md excludes retries from calls). calls_by_role.md has "
    "them by role",
    "latency per question is measured one question at a time: on LoCoMo, in clag_table02.md",
    f"{DASH}: unknown or not applicable",
)


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Cost of one turn or one question; ``None`` where it is unknown."""

    calls: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class SystemLine:
    """One run.

    Attributes:
        label: its name in the group.
        run: the run.
        score: percent, by the lead metric of its protocol; ``None`` where nothing was answered.
        answerable: the same without questions that have no answer; ``None`` where there are none of these.
        stored: share of the gold turns, percent; as are the next three.
        at_5: share in the first five memories.
        at_10: share in the first ten.
        shown: share in the context.
        write: of building the memory, per turn.
        read: of retrieving and answering, per question.
    """

    label: str
    run: StoredRun
    score: float | None
    answerable: float | None
    stored: float | None
    at_5: float | None
    at_10: float | None
    shown: float | None
    write: UnitCosts
    read: UnitCosts


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of figures, in the table and in the CSV file; a new one needs a line in :data:`MEASURES`.

    Attributes:
        heading: in the table.
        name: in the CSV file.
        of: returns the figure of a run; ``None`` where it is unknown.
        digits: decimals in the table.
    """

    heading: str
    name: str
    of: Callable[[SystemLine], float | None]
    digits: int = 1


MEASURES = (
    Measure("score", "score", lambda line: line.score),
    Measure("answerable", "answerable", lambda line: line.answerable),
    Measure("stored", "stored", lambda line: line.stored),
    Measure("R@5", "recall@5", lambda line: line.at_5),
    Measure("R@10", "recall@10", lambda line: line.at_10),
    Measure("in context", "in_context", lambda line: line.shown),
    Measure("calls per turn", "calls_per_turn", lambda line: line.write.calls, 2),
    Measure("tokens per turn", "tokens_per_turn", lambda line: line.write.tokens, 0),
    Measure("calls per question", "calls_per_question", lambda line: line.read.calls, 2),
    Measure("tokens per question", "tokens_per_question", lambda line: line.read.tokens, 0),
)


def system_lines(group: QualityGroup) -> list[SystemLine]:
    """Return the runs of a group: references, then systems, both by score."""
    found = map(_line, group.systems)
    return sorted(
        found, key=lambda line: (not line.run.reference, -_known(line.score), -_known(line.at_10), line.label)
    )


def _known(value: float | None) -> float:
    return -inf if value is None else value


def _line(one: SystemQuality) -> SystemLine:
    run, protocol = one.run, weighted_protocol(one.run)
    return SystemLine(
        one.label,
        run,
        _score(run, protocol),
        _score(run, answerable_alone(protocol)) if run.asks_unanswerable else None,
        *_shares(one),
        _per_unit(run, construction_totals(run.summary), turns_written(run.summary)),
        _per_unit(run, read_totals(run.summary), run.asked),
    )


def _shares(one: SystemQuality) -> tuple[float | None, float | None, float | None, float | None]:
    if not one.funnels:
        return None, None, None, None
    every = one.funnels[0]
    return every.stored, every.at_5, every.at_10, every.shown


def _score(run: StoredRun, protocol: Protocol) -> float | None:
    return None if run.retrieval_only else mean_score(run.rows, answer_metric(protocol)[1], protocol).score


def _per_unit(run: StoredRun, totals: Sequence[Mapping[str, Any]], units: float) -> UnitCosts:
    """Divide the totals of some phases; nothing for a run without ledger, or whose units were not counted."""
    if not units or not (run.summary.get("calls") or {}).get("by_phase"):
        return UnitCosts()
    tokens = sum(total["prompt_tokens"] + total["completion_tokens"] for total in totals)
    return UnitCosts(sum(total["calls"] for total in totals) / units, tokens / units)


def systems_page(groups: Sequence[QualityGroup]) -> TablePage:
    """Return the table of every group, with one row a run."""
    found = [(group, system_lines(group)) for group in groups]
    sections = [
        Section(group.title, group.key, [system_table(lines)], [(line.label, line.run) for line in lines])
        for group, lines in found
    ]
    about = ("run", "system", "dataset", "backbone", "questions", "protocol", "metric")
    rows = [[*_about(line), *(one.of(line) for one in MEASURES)] for _, lines in found for line in lines]
    data = Table("", columns((*about, *(one.name for one in MEASURES))), rows)
    return TablePage(NAME, "All systems", LEGEND, sections, data)


def system_table(lines: Sequence[SystemLine]) -> Table:
    """Return the table of the runs of a group."""
    unlike = unlike_settings([line.run for line in lines if not line.run.reference])
    notes = [f"score: {', '.join(sorted({_metric(line.run) for line in lines}))}", *([unlike] if unlike else [])]
    notes += [f"{line.label}: {line.run.unanswered}" for line in lines if line.run.unanswered]
    shown = [*columns(("system",)), *(Column(one.heading, digits=one.digits) for one in MEASURES)]
    return Table("All systems", shown, [[line.label, *(one.of(line) for one in MEASURES)] for line in lines], notes)


def _metric(run: StoredRun) -> str:
    protocol = weighted_protocol(run)
    return f"{answer_metric(protocol)[1]} (protocol {protocol.name})"


def _about(line: SystemLine) -> list[Cell]:
    run, protocol = line.run, weighted_protocol(line.run)
    about = (run.run_id, line.label, run.dataset, run.backbone, len(run.rows))
    return [*about, protocol.name, answer_metric(protocol)[1]]
