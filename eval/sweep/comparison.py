"""What Hydra calls when a sweep has ended: ``hydra.callbacks.comparison`` of ``conf/config.yaml``."""

import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from eval.commands import EXIT_INCOMPLETE


class Comparison(Callback):
    """After a sweep: how its cells stand, and one table, its files and a plot over those that are done."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Show what came of the sweep; the process ends with a status other than 0 unless every cell is done."""
        from eval.experiment import compare_runs
        from eval.sweep.cells import Composer
        from eval.sweep.report import show_unfinished
        from eval.sweep.status import sweep_status

        overrides = [*config.hydra.overrides.hydra, *config.hydra.overrides.task]
        statuses = sweep_status(Composer().sweep(overrides))
        done = [status.path for status in statuses if status.standing == "done" and status.path]
        if done and config.score:
            compare_runs(done, Path(config.hydra.sweep.dir) / "comparison")
        if len(done) < len(statuses):
            show_unfinished(statuses)
            sys.exit(EXIT_INCOMPLETE)
