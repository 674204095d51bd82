"""The estimates of plans against the ledgers of real runs, role by role."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.commands.rendering.table import Cell, Table, columns
from eval.commands.rendering.terminal import show
from eval.commands.terminal import console
from eval.config.compose import resolved_choice
from eval.config.presets import current_name
from eval.results.frame import Skipped, read_run
from eval.running.composed import make_part
from eval.runs.folders import find_run_folders
from eval.runs.records import JUDGING
from eval.sweep.calls import memory_calls, reader_calls, shape_of_counts
from memsys.call_model import ExpectedCalls
from memsys.prompt_packs.local import how_to_fetch, is_present, is_reference, parse_reference


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """One role of one run.

    Attributes:
        run: its id.
        phase: of the calls.
        role: of the calls.
        planned: calls as a plan has them; ``None`` for a role that the plan does not know.
        counted: calls in the ledger, second attempts apart.
        planned_tokens: prompt and reply together, all calls.
        counted_tokens: likewise, without second attempts.
    """

    run: str
    phase: str
    role: str
    planned: float | None
    counted: float
    planned_tokens: float
    counted_tokens: float


@dataclass(frozen=True, slots=True)
class CheckedRuns:
    """Runs that could be compared with plans.

    Attributes:
        rows: one per role of every run checked.
        unchecked: ids of runs with prompts that are not on this machine (authors' prompts are fetched, not committed).
    """

    rows: list[RoleCheck]
    unchecked: list[str]


def check_runs(roots: Sequence[Path]) -> CheckedRuns:
    """Compare plans with every run with calls below some folders (run directories or summaries).

    Raises:
        RunDirectoryError: a folder does not exist, or a file is broken.
        ConfigError: a run has settings that this version does not know.
    """
    checked = CheckedRuns([], [])
    for folder in find_run_folders(roots):
        run = read_run(folder)
        if isinstance(run, Skipped) or run.record["mode"] != "answers":
            continue
        calls = run.summary.get("calls")  # null where answers were recorded elsewhere
        if calls and has_unfetched_prompts(run.record["config"]):
            checked.unchecked.append(run.run_id)
        elif calls:
            kinds = Counter(row.kind for row in run.rows)
            checked.rows.extend(check_run(run.record, calls["by_phase"], kinds))
    return checked


def has_unfetched_prompts(setting: Any) -> bool:
    """Return whether settings, at any depth, name an authors' text that is not on this machine."""
    if isinstance(setting, Mapping):
        return any(has_unfetched_prompts(value) for value in setting.values())
    return isinstance(setting, str) and is_reference(setting) and not is_present(parse_reference(setting))


def check_run(record: Mapping[str, Any], by_phase: Mapping[str, Any], kinds: Mapping[str, int]) -> list[RoleCheck]:
    """Compare a plan with one run: the settings it was made with, the sizes of its data.

    Args:
        record: of ``run.json``.
        by_phase: counted calls.
        kinds: questions by kind.
    """
    memory, reader = (_part(record["config"], name) for name in ("memory", "reader"))
    shape = shape_of_counts(record["data"], kinds)
    own = memory_calls(memory, shape)
    expected = [*(own or ()), *reader_calls(reader, memory, shape)]
    planned: dict[tuple[str, str], list[ExpectedCalls]] = defaultdict(list)
    for each in expected:
        planned[each.phase, each.role].append(each)
    counted = {(phase, role): calls for phase, part in by_phase.items() for role, calls in part["by_role"].items()}
    return [
        _checked(str(record["run_id"]), name, planned.get(name), counted.get(name, {}))
        for name in sorted({*planned, *counted} - {name for name in counted if name[0] == JUDGING})
    ]


def _part(config: Mapping[str, Any], name: str) -> Any:
    """Return a part as in a run: of a changed preset only the settings that are newer than the run."""
    from omegaconf import OmegaConf

    return make_part(OmegaConf.create({name: _completed(config[name], name)}), name)


def _completed(recorded: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the recorded settings of a part, and of a gate's host, completed from their presets."""
    host = recorded.get("host") or {}
    preset_name = current_name(str(recorded["name"])).removesuffix(
        f"_{host.get('name')}"
    )  # a gate's name is completed by its host's
    completed = _merged(resolved_choice(name, preset_name), recorded)
    return {**completed, "host": _completed(host, name)} if host else completed


def _merged(preset: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded settings, completed at any depth from the preset."""
    deeper = {
        key: _merged(preset[key], value)
        for key, value in recorded.items()
        if isinstance(value, Mapping) and isinstance(preset.get(key), Mapping)
    }
    # Classes may have moved since, and settings may have got another name.
    own = {key: value for key, value in recorded.items() if key != "_target_" and key in preset}
    return {**preset, **own, **deeper}


def _checked(
    run: str, name: tuple[str, str], planned: Sequence[ExpectedCalls] | None, counted: Mapping[str, Any]
) -> RoleCheck:
    asked = counted.get("calls", 0)
    first = asked - counted.get("second_attempts", 0)
    tokens = counted.get("prompt_tokens", 0) + counted.get("completion_tokens", 0)
    return RoleCheck(
        run=run,
        phase=name[0],
        role=name[1],
        planned=None if planned is None else sum(each.calls for each in planned),
        counted=first,
        planned_tokens=sum(each.calls * (each.prompt + each.reply) for each in planned or ()),
        counted_tokens=tokens * first / asked if asked else 0.0,
    )


def show_checked(checked: CheckedRuns) -> None:
    """Print a table, the ratio over everything, and which runs could not be checked."""
    rows = checked.rows
    sums = RoleCheck(
        "all",
        "",
        "",
        sum(row.planned or 0 for row in rows),
        sum(row.counted for row in rows),
        sum(row.planned_tokens for row in rows),
        sum(row.counted_tokens for row in rows),
    )
    figures = ("planned", "counted", "planned tokens", "counted tokens", "ratio")
    show(Table("", columns(("run", "phase", "role", *figures), left=3), [_cells(row) for row in (*rows, sums)]))
    if checked.unchecked:
        text = f"not checked, as their prompts are not fetched ({how_to_fetch()}): {', '.join(checked.unchecked)}"
        console().print(text, highlight=False, markup=False)


def _cells(row: RoleCheck) -> list[Cell]:
    return [
        *(row.run, row.phase, row.role),
        "?" if row.planned is None else f"{row.planned:,.0f}",
        *(f"{value:,.0f}" for value in (row.counted, row.planned_tokens, row.counted_tokens)),
        f"{row.planned_tokens / row.counted_tokens:.2f}" if row.counted_tokens else "-",
    ]
