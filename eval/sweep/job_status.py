"""Tickets: what a cell's job says of itself, from its first line on, in a file of its own.

``<runs_dir>/<experiment>/.cells/<key>.json`` is written by the job and touched while it lives; ``<key>.job`` next to it
by the launcher, with the number of the batch job and its log. What the run has done is in its own directory; the
ticket is for what never gets there: settings that do not fit, data that is missing, a process that was killed.
"""

import json
import os
import socket
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

from eval.runs.files import write_json
from eval.runs.run_json import now
from memsys.credentials import redacted
from memsys.errors import MemsysError, RunDirectoryError
from memsys.heartbeat import Heartbeat, disk_time, is_young
from memsys.rows import record_from

T = TypeVar("T")
State = Literal["running", "done", "incomplete", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """Status that a job reports.

    Attributes:
        overrides: which cell it runs.
        state: ``running`` counts only while the file is young.
        reason: of a failure, one paragraph.
        log: file that its error stream goes to; empty for a terminal.
        host: machine.
        process: process id there.
        job: number of the batch job; empty without one.
        devices: ``CUDA_VISIBLE_DEVICES``.
        restarts: how often the batch system has started the job again.
        started: UTC time.
        changed: UTC time.
    """

    overrides: Sequence[str]
    state: State
    reason: str
    log: str
    host: str
    process: int
    job: str
    devices: str | None
    restarts: int
    started: str
    changed: str


@dataclass(frozen=True, slots=True)
class Submission:
    """Submission of a cell's latest job."""

    job: str
    log: str


class TicketWriter:
    """Keeps a cell's ticket for the length of a ``with`` block; an error passes through and is noted on the way."""

    def __init__(self, folder: Path, key: str, overrides: Sequence[str]) -> None:
        self._path = folder / f"{key}.json"
        self._ticket = _own_ticket(overrides)
        self._beat: Heartbeat | None = None

    def __enter__(self) -> "TicketWriter":
        write_json(self._path, asdict(self._ticket))
        self._beat = Heartbeat(self._path).start()
        return self

    def end(self, state: State, reason: str = "") -> None:
        """Say how it ended."""
        self._ticket = replace(self._ticket, state=state, reason=redacted(reason))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beat is not None:
            self._beat.stop()
        if isinstance(error, MemsysError):
            self.end("failed", str(error))
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            self.end("interrupted", "stopped by a signal; it resumes when it is started again")
        elif error is not None:
            self.end("failed", "".join(traceback.format_exception(kind, error, trace))[-4000:])
        write_json(self._path, asdict(replace(self._ticket, changed=now())))


def _own_ticket(overrides: Sequence[str]) -> Ticket:
    environment = os.environ
    array = environment.get("SLURM_ARRAY_JOB_ID")
    job = f"{array}_{environment['SLURM_ARRAY_TASK_ID']}" if array else environment.get("SLURM_JOB_ID", "")
    return Ticket(
        overrides=[redacted(override) for override in overrides],
        state="running",
        reason="",
        log=_own_log(),
        host=socket.gethostname(),
        process=os.getpid(),
        job=job,
        devices=environment.get("CUDA_VISIBLE_DEVICES"),
        restarts=int(environment.get("SLURM_RESTART_COUNT", "0")),
        started=now(),
        changed=now(),
    )


def _own_log() -> str:
    """Return the file behind the error stream, if it is one."""
    try:
        target = Path(f"/proc/self/fd/{sys.stderr.fileno()}").resolve()
    except OSError:  # no such stream, or no such system
        return ""
    return str(target) if target.is_file() else ""


def read_ticket(folder: Path, key: str) -> tuple[Ticket, bool] | None:
    """Return a cell's ticket, and whether its job has given a sign of life lately; ``None`` if it never began.

    Raises:
        RunDirectoryError: the file is damaged, or of another version.
    """
    path = folder / f"{key}.json"
    if not path.is_file():
        return None
    ticket = _read(Ticket, path)
    return ticket, is_young(path, disk_time(folder)) and not _has_ended(ticket)


def _has_ended(ticket: Ticket) -> bool:
    """Return whether the process is known to be gone, as for a local sweep that was stopped just now."""
    if ticket.job or ticket.host != socket.gethostname():
        return False  # the number counts on its own machine, and the batch system knows better
    try:
        os.kill(ticket.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # another user's process, and alive
    return False


def read_submission(folder: Path, key: str) -> Submission | None:
    """Return the launcher's record; ``None`` if the cell was never submitted.

    Raises:
        RunDirectoryError: the file is damaged, or of another version.
    """
    path = folder / f"{key}.job"
    return _read(Submission, path) if path.is_file() else None


def _read(kind: type[T], path: Path) -> T:
    try:
        return record_from(kind, json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(
            f"{path} does not fit this version ({error}); delete it: what its run has done is in the run directory"
        ) from error


def submitted_since(folder: Path, key: str) -> bool:
    """Return whether a cell was resubmitted after its latest job last wrote its ticket."""
    job, ticket = folder / f"{key}.job", folder / f"{key}.json"
    return job.is_file() and job.stat().st_mtime > ticket.stat().st_mtime


def is_own_submission(folder: Path, key: str) -> bool:
    """Return whether we submitted a cell: a batch system shows users only their own jobs."""
    return (folder / f"{key}.job").stat().st_uid == os.getuid()


def write_submission(folder: Path, key: str, submission: Submission) -> None:
    """Note a cell's job."""
    write_json(folder / f"{key}.job", asdict(submission))
