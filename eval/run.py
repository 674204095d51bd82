"""Run a memory system over a data set, score its answers, show the table: ``python -m eval.run``.

Hydra is known here, in :mod:`eval.sweep.cells`, :mod:`eval.sweep.comparison`, and in the launchers alone; no module
imports it before it is used, so that ``--help`` and what only needs the settings start at once.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.cli.commands import EXIT_BUDGET, EXIT_INCOMPLETE, EXIT_INTERRUPTED, explains_errors, one_message, start
from eval.cli.places import use_checkout
from memsys.assets.paths import shipped

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONF = str(shipped("conf"))

# Hydra looks for ``hydra_plugins`` on the module search path, on which a script in another folder does not have it.
if str(Path(CONF).parent) not in sys.path:
    sys.path.append(str(Path(CONF).parent))

#: Parts of the configuration that become objects; everything else is plain settings.
PARTS = ("backbone", "embedder", "memory", "dataset", "reader", "protocol", "scoring")

#: Seconds a cell waits for its run directory: a job that was requeued may start before the disk knows that its first
#: process is gone.
LOCK_WAIT_S = 120.0


@explains_errors
def main() -> int:
    """Print the help, or run what the command line says; Hydra is not imported for the help."""
    from eval.configs.plugins import plugin_folders
    from eval.configs.run_help import asks_for_help, help_text

    if asks_for_help(sys.argv[1:]):
        sys.stdout.write(help_text(sys.argv[1:], added=plugin_folders()))
        return 0

    if sys.stderr.isatty() and not any(argument.startswith(("--c", "--i", "-c", "-i")) for argument in sys.argv[1:]):
        sys.stderr.write("reading the configuration ...\n")

    compose_and_run(sys.argv[1:])
    return 0


def compose_and_run(arguments: Sequence[str]) -> None:
    """Compose the settings of a command line and run them, or hand them to Hydra where they are no single run.

    Raises:
        ConfigError: something on the command line does not exist, or does not fit.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from eval.configs.compose import compose_run
    from eval.configs.overrides import check_command_line, explained

    line = check_command_line(arguments)
    config = None if line.options else compose_run(line.overrides)
    try:
        if config is not None:
            run_single(config)
        else:
            _run_in_hydra(line.arguments())
    except (HydraException, OmegaConfBaseException) as error:
        raise explained(arguments, error) from error


def _run_in_hydra(arguments: list[str]) -> None:
    """Let Hydra do what it is asked for: a sweep, or to show a configuration."""
    import hydra

    from eval.configs.compose import VERSION_BASE
    from eval.sweep.comparison import callback_faults_raised

    sys.argv[1:] = arguments
    os.environ["HYDRA_FULL_ERROR"] = "1"  # its errors are raised, not printed
    with callback_faults_raised():
        hydra.main(version_base=VERSION_BASE, config_path=CONF, config_name="config")(run_composed)()


def run_composed(config: "DictConfig") -> str:
    """Run what Hydra has composed; returns the run directory, empty for a cell that did not get to its end."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    with one_message():
        if not OmegaConf.is_missing(HydraConfig.get().job, "num"):
            return run_cell(config, list(HydraConfig.get().overrides.task), int(HydraConfig.get().job.num) + 1)
        return _run_and_compare(config)


def run_single(config: "DictConfig") -> str:
    """Run a configuration that holds Hydra's own part; returns the run directory."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.utils import configure_log

    from eval.configs.compose import without_hydra
    from eval.sweep.comparison import make_folder

    HydraConfig.instance().set_config(config)
    configure_log(config.hydra.job_logging, config.hydra.verbose)
    make_folder(config.hydra.run.dir)
    with one_message():
        return _run_and_compare(without_hydra(config))


def _run_and_compare(config: "DictConfig") -> str:
    from eval.running.experiment import compare_runs

    path, code = run_one(make_plan(config))
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
    from eval.cli.terminal import complain
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
    """Run one cell of a sweep, which goes on whatever becomes of this one: the cell's ticket says how it ended."""
    from eval.cli.terminal import complain, console
    from eval.sweep.cells import make_cell
    from eval.sweep.numbering import CLOCK
    from eval.sweep.tickets import TicketWriter
    from memsys.errors import MemsysError

    cell = make_cell(config, overrides)
    console().print(f"{CLOCK.begin(number)}: {cell.label}", style="bold", highlight=False, markup=False)
    with TicketWriter(cell.folder, cell.key, overrides) as ticket:
        try:
            path, code = run_one(cell.valid_plan(), LOCK_WAIT_S)
        except MemsysError as error:
            complain(str(error))
            CLOCK.end()
            ticket.end("failed", str(error))
            return ""
        if code == EXIT_INTERRUPTED:
            sys.exit(code)
        CLOCK.end()
        ticket.end("incomplete" if code else "done")
    return "" if code else path


def make_plan(config: "DictConfig") -> Any:
    """Turn a composed configuration into an :class:`eval.running.plan.Plan`: plain objects, no OmegaConf.

    Raises:
        ConfigError: a part does not accept its settings, or a setting has the wrong type.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from eval.configs.overrides import plain_message
    from eval.configs.plugins import load_plugins
    from eval.configs.targets import check_parts
    from eval.running.plan import make_plan as plan
    from memsys.errors import ConfigError

    load_plugins()
    check_parts(config, PARTS)
    config = with_prompts(with_host(config))
    try:
        settings: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:  # Hydra puts a line of its own before what is raised through it
        raise ConfigError(plain_message(error)) from error
    parts: dict[str, Any] = {"backbone": None, "second": None}
    for name in PARTS:
        if name == "backbone" and config.mode == "retrieval_only":
            continue
        parts[name] = make_part(config, name)
    if config.second is not None and config.mode != "retrieval_only":
        parts["second"] = make_part(config, "second")
    return plan(settings, parts)


def make_part(config: "DictConfig", name: str) -> Any:
    """Make one part of a composed configuration.

    Raises:
        ConfigError: the part does not accept its settings, or one has the wrong type.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    from eval.configs.field_types import misfits, wrong_types
    from eval.configs.targets import check_part, check_targets
    from memsys.errors import ConfigError, MemsysError

    settings: Any = OmegaConf.to_container(config[name], resolve=True)
    check_targets(settings, name)
    try:
        made = instantiate(config[name], _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__ or error
        if isinstance(cause, MemsysError):
            raise cause from error
        raise ConfigError("; ".join(misfits(settings, name)) or f"{name}: {_lines(cause)}") from error
    check_part(made, name, settings)
    if problems := wrong_types(settings, name):
        raise ConfigError("; ".join(problems))
    return made


def compose_plan(overrides: Sequence[str]) -> Any:
    """Compose the plan that these command-line overrides describe, for scripts and tests.

    Raises:
        ConfigError: see :func:`make_plan`.
    """
    from hydra import compose, initialize_config_dir

    from eval.configs.compose import VERSION_BASE

    with initialize_config_dir(CONF, version_base=VERSION_BASE):
        return make_plan(compose("config", overrides=list(overrides)))


def with_host(config: "DictConfig") -> "DictConfig":
    """Replace the name of a gate's host by that preset's settings, and complete the gate's own name by it.

    Args:
        config: holds ``memory``; returned as it is where that has no ``host``.

    Raises:
        ConfigError: the host is no preset, or a gate itself.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import open_dict

    from eval.configs.choices import find, presets, settings_of
    from eval.configs.compose import VERSION_BASE
    from memsys.errors import ConfigError

    host = config.memory.get("host")
    if not isinstance(host, str):
        return config
    preset = find(host)
    if preset is None or "host" in settings_of(preset):
        choices = ", ".join(name for name, other in presets().items() if "host" not in settings_of(other))
        problem = "is no preset of conf/memory" if preset is None else "is a gate itself"
        raise ConfigError(f"memory.host={host} {problem}; choose one of {choices}")
    running = GlobalHydra.instance().is_initialized()
    with nullcontext() if running else initialize_config_dir(CONF, version_base=VERSION_BASE):
        hosted = compose(None, overrides=[f"+memory={preset.choice}"]).memory
    resolved = config.copy()
    with open_dict(resolved):
        resolved.memory.host = hosted
        resolved.memory.name = f"{config.memory.name}_{hosted.name}"
    return resolved


def with_prompts(config: "DictConfig") -> "DictConfig":
    """Put the authors' prompts into memory and reader where ``prompts=authors`` asks for them.

    Raises:
        ConfigError: one of them has not been fetched.
    """
    from omegaconf import OmegaConf, open_dict

    from eval.configs.prompt_choice import wants_authors, with_authors_prompts

    if not wants_authors(config):
        return config
    changed = config.copy()
    with open_dict(changed):
        for part in ("memory", "reader"):
            plain: Any = OmegaConf.to_container(config[part], resolve=True, throw_on_missing=True)
            changed[part] = with_authors_prompts(plain)
    return changed


def _lines(error: BaseException) -> str:
    """The first and the last line of Hydra's message: what could not be made, and why."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [repr(error)]
    return " ".join(dict.fromkeys((lines[0], lines[-1])))


if __name__ == "__main__":
    use_checkout()
    start(main)
