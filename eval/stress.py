"""Measure memories on data that are changed on purpose, poison among it: ``memsys stress memory=...``."""

import argparse
import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from eval.commands.commands import EXIT_DONE, EXIT_INCOMPLETE, explains_errors, program, start
from eval.commands.places import RESULTS, check_folder, tracked_remark
from eval.commands.rendering.markdown import bullets, page, render_markdown
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.terminal import show
from eval.commands.terminal import complain, say, stage
from eval.loaders.stress import KINDS, NO_TWIN, InapplicableError, StressSettings
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.results.stress.differences import PLAIN
from eval.results.stress.tables import (
    StressedSystem,
    attack_tables,
    basis,
    change_tables,
    data_table,
    fact_table,
    growth_table,
    kinds_of,
    lost_table,
    remarks,
)
from eval.results.stress.way import ways
from eval.running.plan import Plan, in_turn, with_stress
from eval.runs.files import write_atomic
from memsys.errors import ConfigError

OUT = RESULTS / "comparison"
#: Turns of noise for each turn, and the model where a memory needs one and none is named.
_NOISY, _BACKBONE = {"noise_1x": 1, "noise_5x": 5, "noise_20x": 20}, "qwen25_coder_05b"
_INCOMPLETE = "not complete; run the same command again to continue"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run every system on every changed data set, write the tables; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("stress"),
        description="Memories on changed data: noise, repetition, lost dates, facts that change, poison, another user. "
        "Each change has a benign twin; a memory that needs no model runs without one.",
    )
    parser.add_argument(
        "settings", nargs="+", help="memory=NAME[,NAME], and any setting of `memsys run`, such as dataset=locomo"
    )
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *_NOISY], metavar="KIND", default=list(KINDS),
                        help=f"changes (default: all: {', '.join(KINDS)}); noise is {', '.join(_NOISY)}")  # fmt: skip
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the tables (default: results/comparison)")
    options = parser.parse_args(arguments)
    memories, settings = _memories(options.settings)
    check_folder(options.out)
    changes = list(_changes(options.kinds))
    each = _settings_of_each(memories, settings)
    systems = [_system(memory, own, changes) for memory, own in each.items()]
    _write([one for one in systems if one.runs], options.out)
    return EXIT_DONE if all(one.complete for one in systems) else EXIT_INCOMPLETE


def _memories(settings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the memories that are named.

    Raises:
        ConfigError: none is named, or a change is set by hand.
    """
    named = [setting for setting in settings if setting.startswith("memory=")]
    if len(named) != 1:
        raise ConfigError("name the memories once: memory=rag, or several: memory=rag,bm25_turn")
    if any(setting.startswith(("stress.", "stress=")) for setting in settings):
        raise ConfigError("stress.* is set for each change; choose changes with --kinds")
    return named[0].partition("=")[2].split(","), [setting for setting in settings if setting not in named]


def _settings_of_each(memories: Sequence[str], settings: Sequence[str]) -> dict[str, list[str]]:
    """Return the settings by memory: of several, each gets those ``memory.*`` alone that it has.

    Raises:
        ConfigError: a memory does not exist, or none has a setting.
    """
    from eval.api.parts import composed

    names = {one: re.split("[.=]", one)[1] for one in settings if one.startswith("memory.")}
    if len(memories) == 1 or not names:
        return {memory: list(settings) for memory in memories}
    known = {memory: composed([f"memory={memory}"])["memory"].keys() for memory in memories}
    for setting, name in names.items():
        if not any(name in has for has in known.values()):
            raise ConfigError(f"{setting}: none of {', '.join(memories)} has a setting {name}")
    return {memory: [one for one in settings if one not in names or names[one] in has] for memory, has in known.items()}


def _changes(kinds: Sequence[str]) -> list[StressSettings]:
    """Return every change of some kinds, with its twin after it."""
    found = []
    for kind in KINDS:
        if kind == "noise":
            found += [StressSettings(kind, amount=amount) for name, amount in _NOISY.items() if {kind, name} & {*kinds}]
        elif kind in kinds:
            found += [StressSettings(kind)] + ([] if kind in NO_TWIN else [StressSettings(kind, twin=True)])
    return found


def _system(memory: str, settings: Sequence[str], changes: Sequence[StressSettings]) -> StressedSystem:
    plan = _plan(memory, settings)
    runs: dict[str, StoredRun] = {}
    remarks: dict[str, None] = {}
    complete = True
    for name, changed in [(PLAIN, plan), *((change.name, _changed(plan, change)) for change in changes)]:
        name = name.removeprefix("stress_")
        try:
            with stage(f"{memory}: {name}"):
                found = _run(changed)
        except InapplicableError as error:
            remarks[str(error)] = None  # once with that of the twin
            continue
        if isinstance(found, str):
            remarks[f"{name}: {found}"], complete = None, False
            complain(f"{memory}, {name}: {found}")
        else:
            runs[name] = found
    return StressedSystem(memory, runs, list(remarks), {name: kinds_of(run) for name, run in runs.items()}, complete)


def _plan(memory: str, settings: Sequence[str]) -> Plan:
    """Return the plan on the data as they are: without a model where the memory needs none and none is named.

    Raises:
        ConfigError: a name or a setting does not exist.
    """
    from eval.api.parts import composed
    from eval.config.compose import without_hydra
    from eval.running.composed import make_plan
    from eval.running.preflight import check_memory_has_model

    def plan(*more: str) -> Plan:
        chosen = [f"memory={memory}", *settings, *more]
        made: Plan = make_plan(without_hydra(composed(chosen)), chosen)
        return replace(made, experiment="stress", settings={**made.settings, "experiment": "stress"})

    if any(setting.startswith(("backbone", "mode=")) for setting in settings):
        return plan()
    alone = plan("mode=retrieval_only")
    try:
        check_memory_has_model(alone, alone.dataset.load())
    except ConfigError:
        return plan(f"backbone={_BACKBONE}")
    return alone


def _changed(plan: Plan, change: StressSettings) -> Plan:
    wanted = {"kind": change.kind, "twin": change.twin, "amount": change.amount}
    settings, parts = with_stress({**plan.settings, "stress": wanted}, {"dataset": plan.dataset}, plan.seed)
    schedule = in_turn(plan.schedule, parts["dataset"])
    return replace(plan, settings=settings, dataset=parts["dataset"], schedule=schedule)


def _run(plan: Plan) -> StoredRun | str:
    """Run a plan; returns why there is no result if there is none.

    Raises:
        InapplicableError: the change that it is for changes nothing in its data.
    """
    from eval.running.experiment import run_experiment

    try:
        with redirect_stdout(io.StringIO()):
            result = run_experiment(plan)
    except InapplicableError:
        raise
    except ConfigError as error:
        return str(error)
    found = read_run(result.path) if result.complete else Skipped(result.path, _INCOMPLETE)
    return found.reason if isinstance(found, Skipped) else found


def _write(systems: Sequence[StressedSystem], out: Path) -> None:
    attacked = [*attack_tables(systems), lost_table(systems), fact_table(systems)]
    made = [*change_tables(systems), growth_table(systems), *attacked]
    tables = [table for table in made if table.rows and len(table.columns) > 1]
    for table in tables:
        show(table)
        say("")
    about = [*basis(systems), *remarks(systems)]
    for line in about:
        say(line)
    text = page(
        "# Changed data and attacks",
        bullets(about),
        *(render_markdown(table, level=2) for table in tables),
        ways(systems),
    )
    for name, content in (("stress.md", text), ("stress.csv", render_csv(data_table(systems)))):
        write_atomic(out / name, content.encode())
    say(f"written: {out}/stress.{{md,csv}}")
    if remark := tracked_remark(out):
        say(remark)


if __name__ == "__main__":
    start(main)
