"""Status of a cell, read from its run directory and its ticket."""

import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from eval.commands.terminal import complain
from eval.runs.files import rows_done
from eval.runs.load import find_record
from eval.sweep.cells import Sweep, SweepCell
from eval.sweep.job_status import (
    Submission,
    Ticket,
    is_own_submission,
    read_submission,
    read_ticket,
    submitted_since,
)
from eval.sweep.servers import queued_jobs
from memsys.errors import MemsysError

#: ``done``: complete. ``running``: gives signs of life. ``failed``: ended with a reason; a new start takes it up again.
#: ``stopped``: it was interrupted or killed; a new start takes it up again. ``waiting``: submitted, not begun.
#: ``new``: never submitted.
CellState = Literal["done", "running", "failed", "stopped", "waiting", "new"]
STATES: tuple[CellState, ...] = ("done", "running", "waiting", "new", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class CellStatus:
    """State of a cell.

    Attributes:
        cell: which.
        state: see :data:`CellState`.
        reason: why it failed or stopped.
        path: its run directory; ``None`` while its data is missing.
        log: where its job wrote.
        answered: questions done and wanted, where known.
        ticket: its job's own words.
    """

    cell: SweepCell
    state: CellState
    reason: str
    path: Path | None
    log: str
    answered: tuple[int, int] | None
    ticket: Ticket | None


def sweep_status(sweep: Sweep) -> list[CellStatus]:
    """Return the state of every cell of a sweep.

    A job that ends before its first line leaves no ticket: whether one that seems to wait still does is asked of Slurm.
    """
    statuses = [cell_status(cell) for cell in sweep.cells]
    queue = _queue() if any(status.state == "waiting" for status in statuses) else None
    return statuses if queue is None else [_still_waiting(status, queue) for status in statuses]


def _queue() -> Container[str] | None:
    """Return our jobs in Slurm's queue; ``None`` where it cannot be read."""
    if shutil.which("squeue") is None:
        return None
    try:
        return queued_jobs()
    except MemsysError as error:
        complain(str(error))
        return None


def _still_waiting(status: CellStatus, queue: Container[str]) -> CellStatus:
    """Return a cell's status, corrected where our job no longer waits in the queue."""
    submission = read_submission(status.cell.folder, status.cell.key) if status.state == "waiting" else None
    if submission is None or submission.job in queue or not is_own_submission(status.cell.folder, status.cell.key):
        return status
    now = cell_status(status.cell)  # it may have begun and ended since the first look
    if now.state != "waiting":
        return now
    return replace(now, state="stopped", reason=f"job {submission.job} left Slurm's queue before it began")


def cell_status(cell: SweepCell) -> CellStatus:
    """Return the status of one cell."""
    found = read_ticket(cell.folder, cell.key)
    ticket, alive = found if found else (None, False)
    submission = read_submission(cell.folder, cell.key)
    try:
        if cell.plan is None:
            raise MemsysError(cell.problem)
        path: Path | None = cell.path
        record = find_record(cell.path) or {}
        problem = ""
    except MemsysError as error:
        path, record, problem = None, {}, str(error)
    if ticket is not None and not alive and submitted_since(cell.folder, cell.key):
        ticket = None  # of an earlier job
    state, reason = _state(record, ticket, alive, submission, problem)
    log = (ticket.log if ticket else "") or (submission.log if submission else "")
    return CellStatus(cell, state, reason, path, log, _answered(path, record), ticket)


def _state(
    record: Mapping[str, Any], ticket: Ticket | None, alive: bool, submission: Submission | None, problem: str
) -> tuple[CellState, str]:
    if record.get("status") == "complete":
        return "done", ""
    if ticket is not None and ticket.state == "running" and alive:
        return "running", ""
    if ticket is not None and ticket.state == "failed":
        return "failed", ticket.reason
    if problem:
        return "failed", problem
    if submission is not None and ticket is None:
        return "waiting", f"job {submission.job}"
    if record.get("status") == "incomplete":
        return "failed", "; ".join(record["problems"]) or "some questions have no answer"
    if ticket is not None and ticket.state == "running":
        return "stopped", f"no heartbeat from process {ticket.process} on {ticket.host}: killed, or its machine lost"
    if record or ticket is not None:
        return "stopped", ticket.reason if ticket and ticket.reason else "interrupted"
    return "new", ""


def _answered(path: Path | None, record: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the numbers of answered and wanted questions; counted in the files of a running cell."""
    if path is None or not record:
        return None
    counts = record.get("counts") or {}
    done = rows_done(path, record["mode"])
    wanted = counts.get("questions") or record["data"].get("questions") or 0
    return done, int(wanted)


def counted(statuses: Sequence[CellStatus]) -> dict[CellState, int]:
    """Return how many cells are in each state."""
    return {name: sum(status.state == name for status in statuses) for name in STATES}
