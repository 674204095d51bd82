"""Hydra callback that compares runs when a sweep has ended: ``hydra.callbacks.comparison`` of ``conf/config.yaml``."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from eval.commands.commands import EXIT_INCOMPLETE, one_message
from eval.sweep.numbering import expect_cells, sweep_jobs


class SweepCallback(Callback):
    """Before a run or a sweep: its folder. After a sweep: the state of its cells, one table, its files and a plot."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Make the folder that Hydra wants, or end with one message where it cannot be made."""
        make_folder(config.hydra.run.dir)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse a configuration that holds a key, before Hydra writes it into the sweep's folder.

        Refuse one run folder for several cells, too.
        """
        from memsys.credentials import without_secrets
        from memsys.errors import ConfigError

        with one_message():
            settings: Any = OmegaConf.to_container(config, resolve=False)
            own = settings.pop("hydra")  # with help texts, which say KEY=VALUE
            for name, value in {
                **settings,
                "hydra": {"launcher": own["launcher"], "job": own["job"]["env_set"]},
            }.items():
                if without_secrets({name: value}) != {name: value}:
                    raise ConfigError(
                        f"the settings of {name} hold a key or password, which a sweep records; put it into an "
                        "environment variable and name that with api_key_env"
                    )
        make_folder(config.hydra.sweep.dir)
        if not chooses_beforehand(config):
            return
        cells = len(sweep_jobs(config, GlobalHydra.instance().config_loader()))
        with one_message():
            if cells > 1 and config.run_dir is not None and not OmegaConf.is_interpolation(config, "run_dir"):
                raise ConfigError(
                    f"run_dir={config.run_dir} is one folder, and the sweep has {cells} cells; leave it out, and each "
                    "has its own under runs_dir"
                )
        expect_cells(cells)

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Show what came of the sweep; the process ends with a status other than 0 unless every cell is done."""
        from eval.config.compose import own_folder
        from eval.running.experiment import compare_runs
        from eval.sweep.cells import Composer
        from eval.sweep.report import show_unfinished
        from eval.sweep.status import sweep_status

        if not chooses_beforehand(config):
            return
        overrides = [*config.hydra.overrides.hydra, *config.hydra.overrides.task]
        with one_message():
            statuses = sweep_status(Composer(own_folder()).sweep(overrides))
            done = [status.path for status in statuses if status.state == "done" and status.path]
            if done and config.score:
                compare_runs(done, Path(config.hydra.sweep.dir) / "comparison", config.show_answers)
        if len(done) < len(statuses):
            show_unfinished(statuses)
            sys.exit(EXIT_INCOMPLETE)


def chooses_beforehand(config: DictConfig) -> bool:
    """Return whether a sweep's cells are known before it runs; a search such as Optuna's chooses them as it goes."""
    return str(config.hydra.sweeper._target_).endswith(".BasicSweeper")


@contextmanager
def callback_faults_raised() -> Iterator[None]:
    """Let what a callback raises end the command: Hydra warns of it and continues, so that a sweep would end with 0.

    Raises:
        UserWarning: Hydra's, which names callback and error.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=r"Callback \w+\.\w+ raised ", category=UserWarning)
        yield


def make_folder(folder: str) -> None:
    """Make the folder of an experiment, or end with one message where it cannot be made."""
    from memsys.errors import RunDirectoryError

    with one_message():
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot make {folder}: {error.strerror}; set runs_dir to a folder that can be written"
            raise RunDirectoryError(reason) from error
