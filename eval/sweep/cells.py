"""From the command line of a sweep to its cells. Composes with Hydra, as ``eval.run`` does."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.terminal import stage
from eval.config.compose import config_loader, without_hydra
from eval.config.first_run import chosen_model
from eval.config.overrides import check_command_line, compose_checked
from eval.loaders.contract import LoadedData
from eval.running.backbones import server_group
from eval.running.composed import make_plan
from eval.running.plan import Plan, identity_of, run_path
from eval.sweep.numbering import sweep_jobs
from memsys.credentials import redacted, without_secrets
from memsys.errors import ConfigError, DataError, MemsysError

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Settings of how a cell is run, which launchers add to its overrides; they do not name another cell.
LAUNCH_KEYS = ("cache_shared=", "serving.")


@dataclass(frozen=True)
class SweepCell:
    """One run of a sweep.

    Attributes:
        overrides: what tells it from other cells, as ``eval.run`` would get them.
        folder: where its ticket lies.
        plan: what to run; ``None`` if the settings do not fit together.
        problem: why not.
        datasets: loaded data by settings, shared by the cells of a sweep.
        error: that told the problem.
    """

    overrides: tuple[str, ...]
    folder: Path
    plan: Plan | None
    problem: str = ""
    datasets: dict[str, LoadedData] = field(default_factory=dict, repr=False)
    error: MemsysError | None = field(default=None, repr=False, compare=False)

    @cached_property
    def key(self) -> str:
        """Names the cell among those of its experiment: as its run directory, or by its overrides if it has none."""
        try:
            if self.plan is not None:
                return self.path.name
        except DataError:
            pass
        own = sorted(override for override in self.overrides if not override.startswith(LAUNCH_KEYS))
        return hashlib.sha256("\n".join(without_secrets(own)).encode()).hexdigest()[:12]

    def valid_plan(self) -> Plan:
        """Return the plan of a valid cell.

        Raises:
            ConfigError: the settings do not fit together.
        """
        if self.plan is None:
            raise self.error if isinstance(self.error, ConfigError) else ConfigError(self.problem)
        return self.plan

    @property
    def label(self) -> str:
        """Label for people: memory, data set, backbone, seed."""
        if self.plan is None:
            return redacted(" ".join(self.overrides))
        backbone = self.plan.backbone.name if self.plan.backbone else "retrieval"
        return f"{self.plan.memory.name} | {self.plan.dataset.name} | {backbone} | seed {self.plan.seed}"

    @cached_property
    def data(self) -> LoadedData:
        """The cell's data.

        Raises:
            DataError: it is not there, or damaged.
        """
        assert self.plan is not None
        key = repr(self.plan.dataset)
        if key not in self.datasets:
            self.datasets[key] = self.plan.dataset.load()
        return self.datasets[key]

    @cached_property
    def path(self) -> Path:
        """Folder of its run.

        Raises:
            DataError: the data is not there; its checksum is part of the name.
        """
        assert self.plan is not None
        return run_path(self.plan, identity_of(self.plan, self.data.sha256))

    @property
    def group(self) -> str:
        """Name of the servers that can serve it; empty if it needs none."""
        return server_group(self.plan.backbone) if self.plan and self.plan.backbone else ""


@dataclass(frozen=True)
class Sweep:
    """The cells of a command line, and the folder of their experiment."""

    cells: tuple[SweepCell, ...]
    folder: Path


class Composer:
    """Composes configurations outside ``hydra.main``.

    Args:
        folder: a further folder of configuration.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._loader = config_loader(folder)
        self._datasets: dict[str, LoadedData] = {}

    def compose(self, overrides: Sequence[str], *, sweep: bool) -> "DictConfig":
        """Compose one configuration, Hydra's own part included.

        Raises:
            ConfigError: an override is wrong.
        """
        return compose_checked(self._loader, overrides, sweep=sweep)

    def cell(self, overrides: Sequence[str]) -> SweepCell:
        """Compose one cell; one whose parts do not accept their settings says why.

        Raises:
            ConfigError: an override names what does not exist.
        """
        config = without_hydra(self.compose(overrides, sweep=False))
        return replace(make_cell(config, overrides, overrides), datasets=self._datasets)

    def jobs(self, overrides: Sequence[str]) -> tuple[list[list[str]], Path]:
        """Return the overrides of each cell of a sweep, in the order in which Hydra launches them, and its folder.

        Raises:
            ConfigError: an override is wrong.
        """
        options = ["-m"] if self._folder is None else ["-m", "--config-dir", str(self._folder)]
        overrides = check_command_line([*options, *overrides]).overrides
        overrides = (*overrides, *chosen_model(overrides))
        config = self.compose(overrides, sweep=True)
        return sweep_jobs(config, self._loader), Path(config.runs_dir) / str(config.experiment)

    def sweep(self, overrides: Sequence[str]) -> Sweep:
        """Return all cells of a sweep, in the order in which Hydra would launch them.

        Raises:
            ConfigError: an override is wrong.
        """
        jobs, folder = self.jobs(overrides)
        cells = []
        for number, job in enumerate(jobs, start=1):
            with stage(f"composing cell {number} of {len(jobs)}"):
                cells.append(self.cell(job))
        return Sweep(tuple(cells), folder)


def make_cell(config: "DictConfig", overrides: Sequence[str], given: Sequence[str] | None = None) -> SweepCell:
    """Make a cell from its composed configuration; one whose parts do not accept their settings says why.

    Args:
        config: without Hydra's own part.
        overrides: that choose it.
        given: what the user gave; ``None``: Hydra's command line says it.
    """
    folder = Path(config.runs_dir) / str(config.experiment) / ".cells"
    try:
        plan: Any = make_plan(config, given)
    except MemsysError as error:
        return SweepCell(tuple(overrides), folder, None, str(error), error=error)
    return SweepCell(tuple(overrides), folder, plan)
