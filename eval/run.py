"""Run a memory system over a data set, score its answers, show the table: ``memsys run``.

No module imports Hydra before it is used, so that ``--help`` and what only needs the settings start at once.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.commands import (
    EXIT_BUDGET,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    explain,
    explains_errors,
    one_message,
    start,
)

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from eval.config.command_line import CommandLine
    from eval.running.plan import Plan

#: Seconds a cell waits for its run directory: a job that was requeued may start before the disk knows that its first
#: process is gone.
LOCK_WAIT_S = 120.0
#: Option of ours among Hydra's: fetch, and spend, without a question.
AGREED = "--yes"


@explains_errors
def main() -> int:
    """Print the help, or run what the command line says; Hydra is not imported for the help."""
    from eval.commands.plugins import plugin_folders
    from eval.config.run_help import asks_for_help, help_text

    if asks_for_help(sys.argv[1:]):
        sys.stdout.write(help_text(sys.argv[1:], added=plugin_folders()))
        return 0

    if sys.stderr.isatty() and not any(argument.startswith(("--c", "--i", "-c", "-i")) for argument in sys.argv[1:]):
        sys.stderr.write("reading the configuration ...\n")

    arguments = [argument for argument in sys.argv[1:] if argument != AGREED]
    compose_and_run(arguments, agreed=len(arguments) < len(sys.argv) - 1)
    return 0


def compose_and_run(arguments: Sequence[str], *, agreed: bool = False) -> None:
    """Compose the settings of a command line and run them; of ``+sweep=a,b`` one sweep after the other.

    Args:
        arguments: of the command line.
        agreed: fetch the model that a run has where none is named, and pay a hosted one, without a question.

    Raises:
        AssetError: this model is not here and was not fetched.
        ConfigError: something on the command line does not exist, or does not fit.
    """
    from eval.config.command_line import one_sweep_each, split
    from eval.config.overrides import check_command_line, report_repeated

    report_repeated(split(arguments).overrides)  # as they were written
    each = one_sweep_each(arguments)
    lines = [check_command_line(one) for one in each]  # before the first of them runs
    statuses = [_run_line(line, one, agreed=agreed) for line, one in zip(lines, each, strict=True)]
    if any(statuses):
        sys.exit(max(statuses))


def _run_line(line: "CommandLine", arguments: Sequence[str], *, agreed: bool) -> int:
    """Run a command line, or hand it to Hydra where it is not a single run; returns the exit status of a sweep.

    Raises:
        ConfigError: its settings do not fit.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from eval.config.compose import compose_run
    from eval.config.first_run import chosen_model
    from eval.config.overrides import check_effect, explained

    added = chosen_model(line.overrides)
    line = replace(line, overrides=(*line.overrides, *added))
    config = None if line.options else compose_run(line.overrides)
    prepare = partial(_prepare, added, agreed=agreed)
    try:
        if config is not None:
            check_effect(config, line.overrides)
            run_single(config, prepare)
            return 0
        if line.shows_alone:
            return _run_in_hydra(line.arguments(), None)
        sweeps = line.multirun or _chooses_sweep(line)
        if sweeps:
            _prepare_sweep(line, added, agreed=agreed)
        return _run_in_hydra(line.arguments(), None if sweeps else prepare)
    except (HydraException, OmegaConfBaseException) as error:
        raise explained(arguments, error) from error


def _chooses_sweep(line: "CommandLine") -> bool:
    """Return whether the choices of a command line ask for a sweep without ``-m``, as ``+sweep=NAME`` does."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from eval.config.compose import compose, config_loader, is_sweep

    try:
        return is_sweep(compose(config_loader(line.config_dir), line.overrides))
    except (HydraException, OmegaConfBaseException):
        return False  # Hydra says why


def _prepare(added: Sequence[str], plan: "Plan", *, agreed: bool) -> None:
    """Fetch the model that a run needs, and say what it will cost.

    Raises:
        AssetError: the model is not here and was not fetched.
        ConfigError: the answer to the costs is no.
    """
    from eval.sweep.expense import confirm_run

    _fetch_model(added, agreed=agreed)
    confirm_run(plan, agreed=agreed)


def _prepare_sweep(line: "CommandLine", added: Sequence[str], *, agreed: bool) -> None:
    """Fetch the model that the cells of a sweep need, and say what they will cost together.

    Raises:
        AssetError: the model is not here and was not fetched.
        ConfigError: the answer to the costs is no.
    """
    from eval.sweep.expense import confirm_sweep

    _fetch_model(added, agreed=agreed)
    confirm_sweep(line.overrides, line.config_dir, agreed=agreed)


def _fetch_model(added: Sequence[str], *, agreed: bool) -> None:
    """Say which model a run has that names none, and see that it is here.

    Args:
        added: backbone and reader as overrides; empty where the run names its own.
        agreed: fetch the model without a question.

    Raises:
        AssetError: it is not here and was not fetched.
    """
    from eval.commands.fetching import fetch_missing
    from eval.commands.terminal import say
    from eval.config.first_run import NO_MODEL_HINT, missing_models

    if added:
        say(f"no backbone is named; this run has {' '.join(added)}")
        fetch_missing(missing_models(added[0].partition("=")[2]), agreed=agreed, otherwise=NO_MODEL_HINT)


def _run_in_hydra(arguments: list[str], prepare: "Callable[[Plan], None] | None") -> int:
    """Let Hydra do what it is asked for; returns 3 where cells of a sweep are not done.

    Args:
        arguments: for Hydra.
        prepare: called before the run; ``None`` for a sweep, or to show a configuration.
    """
    import hydra

    from eval.config.compose import VERSION_BASE, register_search_path
    from eval.config.presets import CONF
    from eval.sweep.comparison import callback_faults_raised
    from eval.sweep.launchers import register_launchers
    from eval.sweep.orphans import cells_follow_this_process

    # Hydra takes what follows a bare --info for its topic.
    sys.argv[1:] = ["--info=all" if each in ("--info", "-i") else each for each in arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # its errors are raised, not printed
    register_search_path()
    register_launchers()

    def run(config: "DictConfig") -> float:
        assert prepare is not None
        return run_composed(config, prepare)

    task = run_composed if prepare is None else run  # launchers hand it to other processes by its name
    with callback_faults_raised(), cells_follow_this_process():
        try:
            hydra.main(version_base=VERSION_BASE, config_path=str(CONF), config_name="config")(task)()
        except SystemExit as ended:
            if ended.code != EXIT_INCOMPLETE:
                raise
            return EXIT_INCOMPLETE
    return 0


def run_composed(config: "DictConfig", prepare: "Callable[[Plan], None]" = lambda plan: None) -> float:
    """Run what Hydra has composed.

    Args:
        config: of a run, or of one cell of a sweep.
        prepare: called before a run outside sweeps.

    Returns:
        The primary metric, for sweepers that search by it; NaN for a cell that did not get to its end or has no score.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    with one_message():
        if not OmegaConf.is_missing(HydraConfig.get().job, "num"):
            path = run_cell(config, list(HydraConfig.get().overrides.task), int(HydraConfig.get().job.num) + 1)
        else:
            path = _run_and_compare(config, prepare)
        return primary_score(Path(path), config) if path and config.score else math.nan


def primary_score(run: Path, config: "DictConfig") -> float:
    """Return the mean of a complete run's primary metric: the protocol's, or evidence recall without a backbone."""
    from eval.runs.load import SUMMARY

    name = "e_recall" if config.mode == "retrieval_only" else str(config.protocol.primary)
    summary = json.loads((run / SUMMARY).read_text(encoding="utf-8"))
    mean = (summary["metrics"]["overall"].get(name) or {}).get("mean")
    return math.nan if mean is None else float(mean)


def run_single(config: "DictConfig", prepare: "Callable[[Plan], None]" = lambda plan: None) -> str:
    """Run a configuration that holds Hydra's own part; returns the run directory.

    Args:
        config: as composed.
        prepare: called before the run, once its settings are known to fit.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.utils import configure_log

    from eval.config.compose import without_hydra
    from eval.sweep.comparison import make_folder

    HydraConfig.instance().set_config(config)
    configure_log(config.hydra.job_logging, config.hydra.verbose)
    make_folder(config.hydra.run.dir)
    with one_message():
        return _run_and_compare(without_hydra(config), prepare)


def _run_and_compare(config: "DictConfig", prepare: "Callable[[Plan], None]" = lambda plan: None) -> str:
    from eval.running.composed import make_plan
    from eval.running.experiment import compare_runs

    plan = make_plan(config)
    prepare(plan)
    path, code = run_one(plan)
    if code:
        sys.exit(code)
    if config.score:
        compare_runs([Path(path)], Path(path) / "comparison", config.show_answers)
    return path


def run_one(plan: Any, lock_wait_s: float = 0.0) -> tuple[str, int]:
    """Run one plan; returns the run directory and the exit status.

    Raises:
        MemsysError: bad settings, data, models or run directory.
    """
    from eval.commands.terminal import complain
    from eval.running.experiment import run_experiment
    from memsys.errors import BudgetSpentError

    try:
        result = run_experiment(plan, lock_wait_s=lock_wait_s)
    except BudgetSpentError as error:
        complain(str(error))
        return "", EXIT_BUDGET
    except KeyboardInterrupt:
        complain("interrupted; everything finished so far is kept, the same command resumes")
        return "", EXIT_INTERRUPTED
    if not result.complete:
        complain(f"the run is incomplete, the same command resumes it: {result.path}")
        return str(result.path), EXIT_INCOMPLETE
    return str(result.path), 0


def run_cell(config: "DictConfig", overrides: list[str], number: int = 1) -> str:
    """Run one cell of a sweep, which continues whatever becomes of this one: the cell's ticket says how it ended."""
    from eval.commands.terminal import console
    from eval.sweep.cells import make_cell
    from eval.sweep.job_status import TicketWriter
    from eval.sweep.numbering import CLOCK
    from eval.sweep.orphans import end_with_the_sweep
    from memsys.errors import MemsysError

    end_with_the_sweep()
    cell = make_cell(config, overrides)
    console().print(f"{CLOCK.begin(number)}: {cell.label}", style="bold", highlight=False, markup=False)
    with TicketWriter(cell.folder, cell.key, overrides) as ticket:
        try:
            path, code = run_one(cell.valid_plan(), LOCK_WAIT_S)
        except MemsysError as error:
            code = explain(error)
            CLOCK.end()
            ticket.end("incomplete" if code == EXIT_INCOMPLETE else "failed", str(error))
            return ""
        if code == EXIT_INTERRUPTED:
            sys.exit(code)
        CLOCK.end()
        ticket.end("incomplete" if code else "done")
    return "" if code else path


if __name__ == "__main__":
    start(main)
