"""Sweeps on a Slurm cluster: a job for each cell, and jobs for the servers that cells share."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher

EXIT_ERROR = 2
#: Keys of the YAML that are not submitit's.
_OWN = ("submitit_folder", "cells", "servers", "sharing", "wait", "poll_s", "max_num_timeout")


class MemsysSlurmLauncher(SlurmLauncher):  # type: ignore[misc]
    """Submits what is not done yet, with servers for the groups that share one, and waits.

    Jobs are hydra-submitit-launcher's own: they are queued again when their time is over or they are preempted, and
    resume. Whether one has ended is asked of ``squeue``, so that no accounting is needed; what came of it is read from
    its files. Ctrl-C ends the waiting alone: the jobs run on.
    """

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Submit a batch and wait for it, or not (``wait=false``)."""
        from eval.commands.terminal import complain, console
        from eval.sweep.launching import returned
        from memsys.errors import MemsysError

        try:
            jobs = self._submit_all(job_overrides)
        except MemsysError as error:
            complain(str(error))
            sys.exit(EXIT_ERROR)
        if jobs and not self.params["wait"]:
            console().print("not waiting: `memsys sweep status` with the same arguments shows their state")
            sys.exit(0)
        self._wait(set(jobs))
        return returned(job_overrides)

    def _submit_all(self, job_overrides: Sequence[Sequence[str]]) -> list[str]:
        """Submit what has to run and is not in the queue already; returns the numbers of all jobs to wait for."""
        from eval.sweep.launching import all_cells, open_cells, portions, queued_cells
        from eval.sweep.servers import queued_jobs

        jobs, cells = queued_cells(all_cells(job_overrides), queued_jobs())
        for portion in portions(open_cells(cells), self.params["sharing"]):
            jobs += self._submit(portion, len(jobs))
        return jobs

    def _submit(self, portion: Any, first: int) -> list[str]:
        """Submit a portion's servers, if it has any, then its cells; returns the numbers of the cells' jobs."""
        from eval.commands.terminal import console
        from eval.sweep.servers import make_executor, submit

        parameters = self._parameters("cells" if portion.shared or not portion.gpus else "servers", portion.gpus)
        parameters["array_parallelism"] = self.params["cells"]["array_parallelism"]
        added = ["serving.shared=true"] if portion.shared else []
        if portion.shared:
            servers = self._request_servers(portion)
            extra = parameters.get("additional_parameters") or {}
            # Cells begin when a server has begun; waiting in the queue costs nobody a core.
            begun = "?".join(f"after:{job}" for job in servers)
            parameters["additional_parameters"] = {**extra, "dependency": begun} if servers else extra
            console().print(f"{portion.cells[0].group}: servers {', '.join(servers) or 'running servers'}")
        executor = make_executor(self.params["submitit_folder"], parameters)
        tasks = [
            (
                [*cell.overrides, *added],
                "hydra.sweep.dir",
                first + index,
                f"cell_{first + index}",
                Singleton.get_state(),
            )
            for index, cell in enumerate(portion.cells)
        ]
        jobs = submit(executor, self, tasks)
        for cell, job in zip(portion.cells, jobs, strict=True):
            self._note(cell, job)
        return [str(job.job_id) for job in jobs]

    def _note(self, cell: Any, job: Any) -> None:
        from eval.commands.terminal import console
        from eval.sweep.job_status import Submission, write_submission

        write_submission(cell.folder, cell.key, Submission(str(job.job_id), str(job.paths.stderr)))
        console().print(f"job {job.job_id}: {cell.label}", highlight=False, markup=False, soft_wrap=True)

    def _request_servers(self, portion: Any) -> list[str]:
        from eval.sweep.servers import ServerRequest, request_servers
        from memsys.llm.engines.registry import Registry

        cell = portion.cells[0]
        request = ServerRequest(
            overrides=cell.overrides,
            replicas=portion.replicas,
            parameters={**self._parameters("servers", portion.gpus), "name": f"memsys-{cell.plan.backbone.name}"},
            logs=str(Path(self.params["submitit_folder"])),
            loopback=self.params["sharing"] == "all",
        )
        return request_servers(Registry(cell.plan.serving.folder / cell.group), request)

    def _parameters(self, kind: str, gpus: int) -> dict[str, Any]:
        """Return the settings of submitit: the common ones, then those of the kind; GPUs as the backbone needs them."""
        common = {key: value for key, value in self.params.items() if key not in _OWN}
        own = {key: value for key, value in self.params[kind].items() if key not in ("gres", "array_parallelism")}
        parameters = {**common, **{key: value for key, value in own.items() if value is not None}}
        parameters["max_num_timeout"] = self.params["max_num_timeout"]
        if kind == "servers" and gpus:
            template = self.params["servers"]["gres"]
            parameters |= {"gres": template.format(gpus=gpus)} if template else {"gpus_per_node": gpus}
        return parameters

    def _wait(self, jobs: set[str]) -> None:
        from eval.commands.terminal import console
        from eval.sweep.servers import queued_jobs
        from memsys.errors import MemsysError

        left, said = set(jobs), ""
        while left:
            time.sleep(self.params["poll_s"])
            try:
                queue = queued_jobs()
            except MemsysError as error:
                console().print(str(error), highlight=False)
                continue
            left &= set(queue)
            reasons = Counter(queue[job] for job in left if queue[job])
            waiting = "".join(f", {number} waiting ({reason})" for reason, number in sorted(reasons.items()))
            line = f"{len(jobs) - len(left)} of {len(jobs)} jobs have ended{waiting}"
            if line != said:
                console().print(line, highlight=False, markup=False, soft_wrap=True)
            said = line
