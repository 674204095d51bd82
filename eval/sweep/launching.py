"""Preparation of a batch of cells for a launcher: omit finished cells, group the rest by their needs."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.commands.terminal import complain, say
from eval.config.compose import own_folder
from eval.sweep.cells import Composer, SweepCell
from eval.sweep.job_status import read_submission
from eval.sweep.status import cell_status
from memsys.errors import ConfigError
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig
from memsys.llm.engines.vllm import VllmEngineConfig

#: Which servers jobs share. ``vllm``: those of vLLM; ``all``: embedded llama.cpp too, on one machine; ``none``: each
#: job starts its own.
SHARING = ("vllm", "all", "none")


@dataclass(frozen=True, slots=True)
class LaunchGroup:
    """Cells that are launched alike.

    Attributes:
        cells: which.
        shared: they use the group's servers.
        gpus: GPUs that a server of theirs needs, the group's or each cell's own; 0 for none.
        replicas: servers the group wants.
    """

    cells: list[SweepCell] = field(default_factory=list)
    shared: bool = False
    gpus: int = 0
    replicas: int = 1


def all_cells(job_overrides: Sequence[Sequence[str]]) -> list[SweepCell]:
    """Return the cells of a batch."""
    composer = Composer(own_folder())
    return [composer.cell(overrides) for overrides in job_overrides]


def queued_cells(cells: Sequence[SweepCell], queue: Container[str]) -> tuple[list[str], list[SweepCell]]:
    """Split cells into waiting or running jobs and the other cells.

    Args:
        cells: of a batch.
        queue: numbers of all jobs that the batch system holds.
    """
    jobs, others = [], []
    for cell in cells:
        submission = read_submission(cell.folder, cell.key)
        if submission is None or submission.job not in queue:
            others.append(cell)
            continue
        jobs.append(submission.job)
        say(f"{cell.label}: in the queue as {submission.job}, not started again")
    return jobs, others


def open_cells(cells: Sequence[SweepCell]) -> list[SweepCell]:
    """Return the cells of a batch that have to run; report those left out, and why.

    A cell whose settings do not fit together is left out too: its reason is shown at the end of the sweep.
    """
    found = []
    for cell in cells:
        if cell.plan is None:
            complain(f"{cell.label}: {cell.problem}")
            continue
        status = cell_status(cell)
        if status.state in ("done", "running"):
            say(f"{cell.label}: {status.state}, not started again")
            continue
        found.append(cell)
    return found


def portions(cells: Sequence[SweepCell], sharing: str) -> list[LaunchGroup]:
    """Sort cells: one portion for each group of servers, one for each need of GPUs, one for what needs neither.

    Raises:
        ConfigError: ``sharing`` is not a choice.
    """
    if sharing not in SHARING:
        raise ConfigError(f"hydra.launcher.sharing={sharing!r} is unknown; choose one of {', '.join(SHARING)}")
    found: dict[tuple[str, int], LaunchGroup] = {}
    for cell in cells:
        shared, gpus, replicas = needs(cell, sharing)
        name = cell.group if shared else ""
        found.setdefault((name, gpus), LaunchGroup(shared=shared, gpus=gpus, replicas=replicas)).cells.append(cell)
    return list(found.values())


def needs(cell: SweepCell, sharing: str) -> tuple[bool, int, int]:
    """Return whether a cell uses a shared server, how many GPUs one takes, and how many servers its group wants.

    Latency is never measured on a server that others use too.
    """
    assert cell.plan is not None
    engine = cell.plan.backbone.engine if cell.plan.backbone else None
    alone = sharing == "none" or cell.plan.timing == "latency"
    if isinstance(engine, VllmEngineConfig) and engine.mode == "managed":
        return not alone, engine.tensor_parallel_size * engine.data_parallel_size, engine.replicas
    if isinstance(engine, LlamaCppEngineConfig) and sharing == "all" and not alone:
        return True, 0, 1
    return False, 0, 1


def returned(job_overrides: Sequence[Sequence[str]]) -> list[Any]:
    """Return what Hydra expects of a launcher for each job; the outcome of a job is in its files."""
    from hydra.core.utils import JobReturn, JobStatus

    jobs = [JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED) for overrides in job_overrides]
    for job in jobs:
        job.return_value = ""
    return jobs
