"""Sweeps on one machine: some cells at a time, and a server for each backbone in turn."""

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra_plugins.hydra_joblib_launcher.joblib_launcher import JoblibLauncher


class MemsysJoblibLauncher(JoblibLauncher):  # type: ignore[misc]
    """Runs what is not done yet in processes of its own.

    Cells that share a backbone on vLLM run together against one server, backbones one after the other, so that a GPU
    never holds two. Other cells run side by side, ``n_jobs`` at a time.
    """

    def __init__(self, sharing: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sharing = sharing

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run a batch; SIGTERM ends it as Ctrl-C does."""
        from eval.commands.commands import terminated_as_interrupted
        from eval.sweep.launching import all_cells, open_cells, portions, returned
        from eval.sweep.local_servers import local_servers

        first, workers = initial_job_idx, self.joblib["n_jobs"]
        with terminated_as_interrupted():
            for portion in portions(open_cells(all_cells(job_overrides)), self._sharing):
                # Each of these starts a server of its own: one at a time.
                self.joblib["n_jobs"] = 1 if portion.gpus and not portion.shared else workers
                with local_servers(portion) as overrides:
                    super().launch([[*cell.overrides, *overrides] for cell in portion.cells], first)
                    _end_workers()
                first += len(portion.cells)
        return returned(job_overrides)


def _end_workers() -> None:
    """End idle workers and servers of this process, where single jobs run: one holds the GPU that others need."""
    from joblib.externals.loky import get_reusable_executor

    from eval.running.backbones import stop_engines

    get_reusable_executor().shutdown(wait=True)
    stop_engines()
