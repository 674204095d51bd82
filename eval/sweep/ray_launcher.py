"""Sweeps on Ray: cells are tasks of hydra-ray-launcher, and the servers that they share are tasks with GPUs."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher

#: Between two looks at whether a server still runs; until one has ended that was told to.
_LOOK_SECONDS, _END_SECONDS = 0.5, 30


class MemsysRayLauncher(Launcher):
    """Runs what is not done yet as tasks on a Ray cluster, or on a Ray of this machine.

    Cells that share a backbone on vLLM run together against its servers, backbones one after the other. A group wants
    ``backbone.engine.replicas`` servers; those for which the cluster has no GPU wait for one, and cells use the others.
    """

    def __init__(self, ray: Any, sharing: str) -> None:
        self._ray, self._sharing = ray, sharing
        self._tasks: Any = None

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Keep what Hydra gives a launcher.

        Raises:
            ConfigError: hydra-ray-launcher is not installed.
        """
        try:
            from hydra_plugins.hydra_ray_launcher.ray_launcher import RayLauncher
        except ImportError as error:
            from memsys.errors import ConfigError

            raise ConfigError(
                "hydra/launcher=ray_cluster needs hydra-ray-launcher: pip install 'memsys[ray]'"
            ) from error
        self._tasks = RayLauncher(self._ray)
        self._tasks.setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run a batch; SIGTERM ends it as Ctrl-C does."""
        from eval.commands.commands import terminated_as_interrupted
        from eval.sweep.launching import all_cells, open_cells, portions, returned

        first = initial_job_idx
        with terminated_as_interrupted():
            for portion in portions(open_cells(all_cells(job_overrides)), self._sharing):
                self._ray.remote.num_gpus = 0 if portion.shared else portion.gpus
                with self._servers(portion) as overrides:
                    self._run([[*cell.overrides, *overrides] for cell in portion.cells], first)
                first += len(portion.cells)
        return returned(job_overrides)

    def _run(self, jobs: Sequence[Sequence[str]], first: int) -> None:
        """Run cells; what came of each is read from its files, also where Ray lost its process."""
        import ray

        from eval.commands.terminal import complain

        try:
            self._tasks.launch(jobs, first)
        except ray.exceptions.RayError as error:
            complain(f"Ray: {str(error).splitlines()[0]}; run the same command again to continue")

    @contextmanager
    def _servers(self, portion: Any) -> Iterator[list[str]]:
        """Serve a portion's cells, if they share servers; gives the overrides that make them use these."""
        from eval.commands.terminal import say
        from eval.serve import log_folder
        from memsys.llm.engines.registry import Registry

        if not portion.shared:
            yield []
            return
        import ray
        from hydra_plugins.hydra_ray_launcher._launcher_util import start_ray

        start_ray(self._ray.init)
        cell = portion.cells[0]
        Registry(cell.plan.serving.folder / cell.group).clear_failure()
        anywhere = self._ray.init.address is not None and portion.gpus > 0
        task = ray.remote(num_cpus=0, num_gpus=portion.gpus, max_retries=-1)(_serve)
        log = str((log_folder(cell.plan) / "serve").absolute())
        servers = [task.remote(list(cell.overrides), log, anywhere) for _ in range(portion.replicas)]
        say(f"{cell.group}: {len(servers)} servers wanted (logs: {log}-*.log)")
        try:
            yield ["serving.shared=true"]
        finally:
            for server in servers:
                ray.cancel(server)
            ray.wait(servers, num_returns=len(servers), timeout=_END_SECONDS)


def _serve(overrides: Sequence[str], log: str, anywhere: bool) -> None:
    """Serve a backbone until nobody needs it, on the GPUs that Ray gave this task; ends with the task."""
    from memsys.llm.engines.process import GuardedProcess

    host = ["--host", socket.gethostname()] if anywhere else []
    line = [sys.executable, "-m", "eval.serve", *host, *overrides]
    process = GuardedProcess(line, os.environ, Path(f"{log}-{os.getpid()}.log"))
    try:
        while process.exit_status is None:
            time.sleep(_LOOK_SECONDS)
    finally:
        process.stop()
