"""Calls of each role of a run: their number, tokens, and the share from the server's prefix cache."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.commands.rendering.table import DASH, Cell, Table, columns, figure
from eval.results.compare.rows import labels
from eval.results.own.methods import calls_of_roles
from eval.results.stored_run import StoredRun
from eval.results.tables.costs import turns_written
from eval.results.tables.groups import ComparableRuns, comparable_runs
from eval.results.tables.page import Section, TablePage
from eval.scoring.call_costs import READ_PHASES

NAME = "calls_by_role"

LEGEND = (
    "calls: all calls of a role in a phase, including cached replies and retries; per turn written in the phases that "
    "build a memory, per question in the others; judges are excluded",
    "prompt, reply: mean tokens per call; ~: estimated, because the server does not report them",
    "prefix cached: share of the prompt tokens that the engine reused from an earlier call, over the calls that "
    "reached the engine; it is lower if a run was resumed or the server was shared",
    "malformed, cut short (the reply reached its token limit) and from the reply cache: share of the calls; asked "
    "again: number of calls that repeat one after a reply that did not parse",
    f"{DASH}: a unit of other phases, or not in the run's summary; under prefix cached: or not reported by the engine",
)
_HEADINGS = (
    "system", "phase", "role", "calls", "per turn", "per question", "prompt", "reply", "prefix cached", "malformed",
    "calls asked again", "cut short", "from the reply cache",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RoleCalls:
    """Calls of one role in one phase of a run.

    Attributes:
        phase: of the run.
        role: name.
        calls: how many.
        per_turn: calls per turn written, in a phase that builds the memory.
        per_question: calls per question, in the others.
        prompt: tokens of a prompt, mean.
        reply: tokens of a reply, mean.
        prefix_cached: percent of the prompt tokens of calls that an engine answered; ``None`` where none says so.
        malformed: percent of the calls; of this and what follows ``None`` in summaries that did not count it.
        asked_again: how many repeat a malformed reply.
        cut_short: percent of the calls.
        from_cache: percent of the calls.
        estimated: of some calls the server did not report the tokens, and they were counted by the client.
    """

    phase: str
    role: str
    calls: int
    per_turn: float | None
    per_question: float | None
    prompt: float
    reply: float
    prefix_cached: float | None
    malformed: float | None
    asked_again: int | None
    cut_short: float | None
    from_cache: float | None
    estimated: bool = False


def role_groups(runs: Sequence[StoredRun]) -> list[ComparableRuns]:
    """Sort runs with a ledger by data set, backbone, prompts and questions; not those that time few questions."""
    found = comparable_runs(run for run in runs if calls_of_roles(run) and not run.times_questions)
    return sorted(found, key=lambda group: (group.setting, group.asked))


def role_calls(run: StoredRun) -> Iterator[RoleCalls]:
    """Yield the calls of each phase and role, in the order of the summary; none of a run without ledger."""
    turns = turns_written(run.summary)
    for (phase, role), totals in calls_of_roles(run).items():
        yield _role(phase, role, totals, turns, run.asked)


def _role(phase: str, role: str, totals: Mapping[str, Any], turns: float, questions: int) -> RoleCalls:
    calls, reads = totals["calls"], phase in READ_PHASES
    cached = totals.get("cached_share")
    return RoleCalls(
        phase,
        role,
        calls,
        calls / turns if turns and not reads else None,
        calls / questions if questions and reads else None,
        totals["prompt_tokens"] / calls,
        totals["completion_tokens"] / calls,
        None if cached is None else 100 * cached,
        _share(totals, "malformed"),
        totals.get("second_attempts"),
        _share(totals, "cut_short"),
        _share(totals, "cache_hits"),
        bool(totals.get("estimated")),
    )


def _share(totals: Mapping[str, Any], name: str) -> float | None:
    """Return the percent of the calls; ``None`` in summaries of versions that did not count it."""
    return None if totals.get(name) is None else 100 * float(totals[name]) / totals["calls"]


def roles_page(runs: Sequence[StoredRun]) -> TablePage:
    """Return a table of every group of runs that can be compared, with a row for each phase and role of a run."""
    groups = role_groups(runs)
    sections = [
        Section(
            group.title("backbone "),
            group.key,
            [role_table(group)],
            list(zip(labels(group.runs), group.runs, strict=True)),
        )
        for group in groups
    ]
    return TablePage(NAME, "Calls by role", LEGEND, sections, _data(groups))


def role_table(group: ComparableRuns) -> Table:
    """Return the roles of every system of a group."""
    rows = []
    for label, run in _named(group):
        rows += [_cells("" if place else label, found) for place, found in enumerate(role_calls(run))]
    return Table("Calls by role", columns(_HEADINGS, left=3), rows)


def _cells(label: str, found: RoleCalls) -> list[Cell]:
    return [
        label,
        found.phase,
        found.role,
        f"{found.calls:,}",
        figure(found.per_turn, 2),
        figure(found.per_question, 2),
        f"{'~' if found.estimated else ''}{figure(found.prompt, 0)}",
        f"{'~' if found.estimated else ''}{figure(found.reply, 0)}",
        _percent(found.prefix_cached),
        _percent(found.malformed),
        figure(found.asked_again, 0),
        _percent(found.cut_short),
        _percent(found.from_cache),
    ]


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.1f} %"


def _named(group: ComparableRuns) -> list[tuple[str, StoredRun]]:
    return list(zip(labels(group.runs), group.runs, strict=True))


def _data(groups: Sequence[ComparableRuns]) -> Table:
    """Return one row per run, phase and role; what is not known is empty."""
    about = ("run", "system", "dataset", "backbone")
    rows = [
        [run.run_id, label, run.dataset, run.backbone, *(getattr(found, name) for name in RoleCalls.__slots__)]
        for group in groups
        for label, run in _named(group)
        for found in role_calls(run)
    ]
    return Table("", columns((*about, *RoleCalls.__slots__)), rows)
