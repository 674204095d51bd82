"""The page of costs: printed rows and our runs below each other, each with its own settings and data.

No line of ours repeats a printed one: settings, data, backbone and machine differ, and each line says its own. Nothing
is extrapolated to the printed work.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.commands.rendering.markdown import bullets, page, render_markdown
from eval.commands.rendering.table import DASH, Cell, Column, Table, figure, texts
from eval.config.answer_prompts import prompts_of
from eval.config.preset_settings import default_settings
from eval.config.presets import MEMORY
from eval.results.stored_run import StoredRun, engines_are_here
from eval.results.tables.costs import (
    Cost,
    CostRegistry,
    CostWork,
    PrintedCost,
    construction_totals,
    measured_cost,
    printed_cost,
    read_totals,
)
from eval.results.tables.page import WRITTEN
from eval.results.tables.variants import changed_settings
from eval.scoring.remarks import remarks

_COLUMNS = (
    *texts(("from", "system or preset", "settings", "backbone", "work done")),
    Column("calls", digits=0),
    Column("calls per turn", digits=2),
    *(
        Column(heading, digits=0)
        for heading in (
            "write tokens per turn", "read tokens per question", "all tokens per question", "all tokens, thousands",
        )
    ),
    *map(Column, ("write hours", "read hours", "hours")),
    Column("machine", "left"),
    Column("remarks", "left"),
)  # fmt: skip
_NOT_PRINTED = "not printed"
#: End of the name of a preset whose replies and context are bounded for small backbones.
_SMALL = "_small"
#: Conversations of a part that are named.
_NAMED = 3
_INTRODUCTION = (
    "Calls, tokens and hours from publications, next to those of our runs. Each line is a separate configuration with "
    "its own settings, backbone and data: our lines follow the printed ones of the same method, but measure a "
    "different workload and are not extrapolated to it."
)
_TERMS = (
    "calls: for construction; ours exclude retries after malformed replies. They are comparable per turn if the "
    "settings match; tokens also depend on the length of prompts and replies.",
    "our settings: differences from the full form of the method, which is named; small form: replies and context "
    "limited for a backbone below one billion parameters.",
    "all tokens per question: tokens of construction and answers, divided by the number of questions; it falls with "
    "the number of questions per conversation.",
    "hours: as printed; ours are the sum of the service times of all calls, although several ran concurrently, "
    "without embedding and search (answers timed one at a time: including them). Hours depend more on the machine "
    f"than on the method. {DASH}: not printed, or unknown; our lines give the reason.",
)


def cost_page(registry: CostRegistry, runs: Sequence[StoredRun]) -> str:
    """Return the page: a table for each printed work, and the sources."""
    published = [run for run in runs if not run.of_sample]
    tables = (render_markdown(_table(registry, name, work, published)) for name, work in registry.works.items())
    sources = bullets(
        f"{source.title} {source.url}{f', commit {source.commit[:12]}' if source.commit else ''}"
        for source in registry.sources.values()
    )
    return page("# Printed costs", _INTRODUCTION, bullets(_TERMS), *tables, "Sources:", sources, WRITTEN)


def _table(registry: CostRegistry, name: str, work: CostWork, runs: Sequence[StoredRun]) -> Table:
    rows = [row for row in registry.rows if row.work == name]
    return Table(_heading(work), _COLUMNS, list(_lines(registry, rows, work, runs)))


def _heading(work: CostWork) -> str:
    turns = "" if work.turns is None else f"{work.turns:,} turns, "
    return f"{work.title}: {turns}{work.questions:,} questions"


def _lines(
    registry: CostRegistry, rows: Sequence[PrintedCost], work: CostWork, runs: Sequence[StoredRun]
) -> Iterator[list[Cell]]:
    """Yield by method: its printed rows, then our runs; rows of systems that are not here come last."""
    for method, names in registry.methods.items():
        printed = [row for row in rows if row.method == method]
        if not printed:
            continue
        ours = [run for run in runs if run.memory in names and run.dataset in work.datasets]
        measured = [(run, cost) for run in ours if (cost := measured_cost(run)) is not None]
        remark = "" if measured else "no run of ours yet"
        yield from (_printed_line(row, work, remark) for row in printed)
        yield from (_measured_line(run, names[0], work, cost) for run, cost in measured)
    yield from (_printed_line(row, work, f"none of ours: {row.why}") for row in rows if row.method is None)


def _printed_line(row: PrintedCost, work: CostWork, remark: str) -> list[Cell]:
    return [
        "printed",
        row.system,
        row.settings or _NOT_PRINTED,
        row.backbone,
        "all",
        *_figures(printed_cost(row, work)),
        _NOT_PRINTED,
        "; ".join(text for text in (remark, row.note) if text),
    ]


def _measured_line(run: StoredRun, full_form: str, work: CostWork, cost: Cost) -> list[Cell]:
    return [
        "ours",
        run.memory,
        _settings(run, full_form),
        run.backbone,
        _part(run, work, cost),
        *_figures(cost),
        _machine(run.record),
        "; ".join(text for text in (_without_hours(run.summary, cost), *remarks(run.summary)) if text),
    ]


def _figures(cost: Cost) -> list[float | None]:
    return [
        _per(cost.calls, 1),
        _per(cost.calls, cost.turns),
        _per(cost.write_tokens, cost.turns),
        _per(cost.read_tokens, cost.questions),
        _per(cost.all_tokens, cost.questions),
        _per(cost.all_tokens, 1000),
        *(cost.write_hours, cost.read_hours, cost.hours),
    ]


def _per(value: float | None, units: float | None) -> float | None:
    return None if value is None or not units else value / units


def _settings(run: StoredRun, full_form: str) -> str:
    """Return a run's deviations from the full form of its method, its prompt set, and its window."""
    if _target(run.memory) != _target(full_form):
        full_form = run.memory  # the package itself has settings of its own
    changed = {key: value for key, value in changed_settings(run.record, full_form).items() if key != "window"}
    shown = [f"{key}={value}" for key, value in changed.items() if not key.startswith("roles.")]
    if replies := len(changed) - len(shown):
        shown.append(f"{replies} settings of roles")
    parts = [
        "small form" if run.memory.endswith(_SMALL) else "",
        f"unlike {full_form}: {', '.join(shown)}" if shown else f"those of {full_form}",
        prompts_of(run.record),
        _window(run),
    ]
    return "; ".join(part for part in parts if part)


def _target(preset: str) -> Any:
    return (default_settings(preset, MEMORY) or {}).get("_target_")


def _window(run: StoredRun) -> str:
    """Return the window of a memory that fills it, and how much of a conversation that is."""
    config = run.record["config"]
    if "window" not in (default_settings(run.memory, MEMORY) or {}):
        return ""
    tokens = (config.get("memory") or {}).get("window") or (config.get("backbone") or {}).get("context_length")
    if tokens is None:
        return "window not recorded"
    counts = (run.summary.get("trace") or {}).get("numbers") or {}
    kept, turns = (((counts.get(name) or {}).get("mean")) for name in ("kept_turns", "turns"))
    fits = "" if kept is None or turns is None or kept >= turns else f", in which {kept:,.0f} of {turns:,.0f} turns fit"
    return f"window of {tokens:,} tokens{fits}"


def _part(run: StoredRun, work: CostWork, cost: Cost) -> str:
    """Return how much of the work a run did."""
    chosen = run.record["config"].get("dataset") or {}
    conversations = len(run.conversations)
    names = f" ({', '.join(run.conversations)})" if conversations <= _NAMED else ""
    whole = f" of {work.conversations}" if conversations <= work.conversations else ""
    parts = [f"{run.dataset}: {conversations}{whole} conversations{names}"]
    if sessions := chosen.get("limit_sessions"):
        parts.append(f"the first {sessions} sessions")
    of = "" if work.turns is None else f" of {work.turns:,}"
    parts.append(f"{figure(cost.turns, 0)}{of} turns")
    parts.append(f"{cost.questions:,} questions")
    if run.asks_unanswerable:
        parts.append("adversarial ones among them")
    return ", ".join(parts)


def _machine(record: Mapping[str, Any]) -> str:
    """Return what a run's backbone ran on, and how many calls at a time."""
    config, found = record["config"], record.get("hardware") or {}
    backbone = config.get("backbone") or {}
    cores = f"{found['cores']} cores, " if found.get("cores") else ""
    machine = ", ".join(found.get("gpus") or ()) or (f"{cores}{found['cpu']}" if found.get("cpu") else "not recorded")
    if not engines_are_here(record):
        machine = "attached servers, machine not recorded"
    if config.get("timing") == "latency":
        return f"{machine}; one question at a time"
    calls = backbone.get("max_in_flight")
    return f"{machine}; up to {calls} calls at a time" if calls else machine


def _without_hours(summary: Mapping[str, Any], cost: Cost) -> str:
    """Return why a run has no hours."""
    wanted = (("write", cost.write_hours, construction_totals), ("read", cost.read_hours, read_totals))
    texts = []
    for name, hours, totals_of in wanted:
        if hours is None:
            totals = totals_of(summary)
            cached, calls = (sum(total[key] for total in totals) for key in ("cache_hits", "calls"))
            texts.append(f"no {name} hours: {cached:,} of {calls:,} replies from the cache")
    return "; ".join(texts)
