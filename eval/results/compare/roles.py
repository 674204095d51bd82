"""What each role of a run asked of the backbone: calls, tokens, the share that the server's prefix cache held."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.commands.escaping import csv_cell, markdown, markdown_code
from eval.results.compare.rows import labels
from eval.results.tables.costs import turns_written
from eval.results.tables.flat import csv_value
from eval.results.tables.groups import ComparableRuns, comparable_runs
from eval.results.tables.methods import calls_of_roles
from eval.results.tables.plain import DASH, PlainTable, figure, plain_markdown
from eval.results.tables.plain_latex import in_one_file, plain_latex
from eval.results.tables.stored import StoredRun
from eval.scoring.call_costs import READ_PHASES

NAME = "calls_by_role"

LEGEND = (
    "calls: all of a role in a phase, those answered by the reply cache and further attempts too; per turn written in "
    "the phases that build a memory, per question in the others; a judge's are left out",
    "prompt, reply: tokens, mean per call; ~: estimated, as the server does not report them",
    "prefix cached: share of the prompt tokens that the engine had computed for an earlier call, over the calls that "
    "asked it; it falls where a run was resumed, or where others shared the server",
    "malformed, cut short (the reply ended at its limit of tokens) and from the reply cache: share of the calls; asked "
    "again: how many calls repeat one whose reply did not parse",
    f"{DASH}: a unit of other phases, or the run's summary does not say; under prefix cached: nor did the engine",
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
    """Calls of each phase and role, in the order of the summary; none of a run without ledger."""
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
    """Percent of the calls; ``None`` in summaries of versions that did not count it."""
    return None if totals.get(name) is None else 100 * float(totals[name]) / totals["calls"]


def role_table(group: ComparableRuns) -> PlainTable:
    """The roles of every system of a group."""
    rows = []
    for run, label in zip(group.runs, labels(group.runs), strict=True):
        rows += [_cells("" if place else label, found) for place, found in enumerate(role_calls(run))]
    return PlainTable(f"Calls by role, {group.title('backbone ')}", _HEADINGS, rows, left=3)


def _cells(label: str, found: RoleCalls) -> list[str]:
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


def render_markdown(groups: Sequence[ComparableRuns]) -> str:
    """Return all groups' tables with the legend and the runs."""
    parts = ["# Calls by role", "", *(f"- {line}" for line in LEGEND), ""]
    for group in groups:
        parts += plain_markdown(role_table(group), f"## {markdown(group.title('backbone '))}")
        parts += [
            f"{markdown(label)}: {markdown_code(run.run_id)}  "
            for run, label in zip(group.runs, labels(group.runs), strict=True)
        ]
        parts.append("")
    return "\n".join([*parts, "Written by `python -m eval.tables`.", ""])


def render_latex(groups: Sequence[ComparableRuns]) -> str:
    """Return one table for each group, with the legend below the first."""
    tables = [replace(role_table(group), notes=() if place else LEGEND) for place, group in enumerate(groups)]
    return in_one_file([plain_latex(table, f"{NAME}-{group.key}") for table, group in zip(tables, groups, strict=True)])


def render_csv(groups: Sequence[ComparableRuns]) -> str:
    """Return one row per run, phase and role; what is not known is empty."""
    text = io.StringIO()
    columns = ("run", "system", "dataset", "backbone", *RoleCalls.__dataclass_fields__)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for group in groups:
        for run, label in zip(group.runs, labels(group.runs), strict=True):
            about = {"run": run.run_id, "system": label, "dataset": run.dataset, "backbone": run.backbone}
            for found in role_calls(run):
                figures = {name: getattr(found, name) for name in RoleCalls.__dataclass_fields__}
                writer.writerow({name: csv_cell(csv_value(value)) for name, value in (about | figures).items()})
    return text.getvalue()


FORMATS = {"md": render_markdown, "csv": render_csv, "tex": render_latex}
