"""Servers as batch jobs: as many as a group wants, submitted once, and again when they are gone and still needed."""

import fcntl
import json
import logging
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.commands.commands import start
from eval.running.composed import plan_of
from eval.running.server_requests import REQUEST, SUBMIT_SECONDS
from eval.runs.files import write_json
from eval.serve import LOOPBACK, serve_plan
from memsys.errors import ConfigError, MemsysError
from memsys.llm.engines.registry import Registry

logger = logging.getLogger(__name__)

_JOBS = "jobs.json"


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """Settings of starting a group's servers.

    Attributes:
        overrides: of ``eval.run``; they name the backbone.
        replicas: servers wanted.
        parameters: of submitit, for each.
        logs: submitit's folder.
        loopback: the servers serve their own machine alone.
    """

    overrides: Sequence[str]
    replicas: int
    parameters: Mapping[str, Any]
    logs: str
    loopback: bool


@dataclass(frozen=True, slots=True)
class ServerJob:
    """One server, as the batch system runs it; interrupted, it is started again."""

    overrides: Sequence[str]
    loopback: bool

    def __call__(self) -> str:
        """Serve until no job needs the server."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
        return serve_plan(plan_of(self.overrides), LOOPBACK if self.loopback else socket.gethostname())

    def checkpoint(self) -> Any:
        """Return the callable for a requeued job: itself."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def request_servers(registry: Registry, request: ServerRequest) -> list[str]:
    """Submit a group's servers, but for those that are queued or running; returns the numbers of all their jobs."""
    registry.clear_failure()
    write_json(registry.folder / REQUEST, asdict(request))
    return _submit_missing(registry.folder)


def _submit_missing(folder: Path) -> list[str]:
    """Submit as many servers as are missing; one process at a time does so."""
    with (folder / ".submitting").open("w") as lock:
        _wait_for_lock(lock.fileno(), folder)
        request = ServerRequest(**json.loads((folder / REQUEST).read_text(encoding="utf-8")))
        file = folder / _JOBS
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        queue = queued_jobs() if known else {}
        jobs = [job for job in known if job in queue]
        for _ in range(request.replicas - len(jobs) - _elsewhere(folder, request, jobs)):
            jobs.append(_submit(request))
            write_json(file, jobs)  # at once: Slurm may refuse the next, and this one must not be forgotten
        return jobs


def _wait_for_lock(file: int, folder: Path) -> None:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX)
    except OSError as error:
        raise MemsysError(
            f"the disk of {folder} cannot lock files ({error.strerror}); set serving.folder to a folder elsewhere"
        ) from error


def _elsewhere(folder: Path, request: ServerRequest, jobs: Sequence[str]) -> int:
    """Return the servers that others have started and jobs on other machines can use."""
    servers = [server for server in Registry(folder).servers() if server.job not in jobs]
    return sum(request.loopback or not server.loopback for server in servers)


def _submit(request: ServerRequest) -> str:
    executor = make_executor(request.logs, request.parameters)
    (job,) = submit(executor, ServerJob(tuple(request.overrides), request.loopback), [()])
    return str(job.job_id)


def make_executor(logs: str, parameters: Mapping[str, Any]) -> Any:
    """Return a submitit executor.

    Args:
        logs: its folder.
        parameters: submitit's names; ``max_num_timeout`` among them.

    Raises:
        ConfigError: submitit does not know one of them.
    """
    from submitit import AutoExecutor

    general = ("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
    chosen = {key: value for key, value in parameters.items() if value is not None}
    if "cpus_per_task" in chosen:
        # Since Slurm 22.05 srun does not take this from the job, and a step would have one core.
        chosen["srun_args"] = [f"--cpus-per-task={chosen['cpus_per_task']}"]
    executor = AutoExecutor(logs, cluster="slurm", slurm_max_num_timeout=chosen.pop("max_num_timeout", 0))
    try:
        executor.update_parameters(
            **{key if key in (*general, "stderr_to_stdout") else f"slurm_{key}": value for key, value in chosen.items()}
        )
    except (ValueError, TypeError, NameError) as error:
        raise ConfigError(f"hydra.launcher: {error}") from error
    return executor


def submit(executor: Any, function: Any, tasks: Sequence[Sequence[Any]]) -> list[Any]:
    """Submit a function once for each tuple of arguments, several as one array; returns submitit's jobs.

    Raises:
        ConfigError: Slurm refuses, and says why.
    """
    from submitit.core.utils import FailedJobError

    try:
        if len(tasks) == 1:
            return [executor.submit(function, *tasks[0])]
        return list(executor.map_array(function, *zip(*tasks, strict=True)))
    except FailedJobError as error:
        raise ConfigError(f"Slurm refuses the job: {error}; see conf/hydra/launcher/slurm.yaml") from error


def queued_jobs() -> dict[str, str]:
    """Return all our waiting or running jobs: number (``123`` or ``123_4``) and, if waiting, Slurm's reason.

    Raises:
        MemsysError: the batch system does not say, or there is none.
    """
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i %t %r"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=False)
    except FileNotFoundError as error:
        raise MemsysError(
            "no Slurm here (squeue is not on the PATH); start the sweep on a login node, or take hydra/launcher=local"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MemsysError(f"squeue has not answered for {SUBMIT_SECONDS} s; try again when Slurm does") from error
    if done.returncode:
        raise MemsysError(f"squeue does not answer ({done.stderr.strip()}); try again when Slurm does")
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return {job: reason if state == "PD" else "" for job, state, reason in rows}


if __name__ == "__main__":
    start(lambda: _submit_missing(Path(sys.argv[1])))
