"""A package's worker as a process: start, requests with time limits, errors in one message, end."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memsys.errors import WorkerEndedError, WorkerError
from memsys.vocabulary import Json
from memsys.workers import worker_loop

#: Bytes of one line; an export of a whole memory is one.
_LONGEST_LINE = 1 << 28
_SHOWN_LINES, _SHOWN_CHARS = 3, 200
_END_SECONDS = 10.0
#: Variables that a worker is given; credentials and proxies of the network are not among them.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """Command and environment of a worker.

    Attributes:
        name: in messages.
        interpreter: Python of the package's environment.
        worker: file with the class ``Worker``.
        log: file that its output is appended to.
    """

    name: str
    interpreter: Path
    worker: Path
    log: Path


class WorkerProcess:
    """A running worker. One request at a time; made by :meth:`start`."""

    def __init__(self, command: WorkerCommand, process: asyncio.subprocess.Process) -> None:
        self._command, self._process = command, process
        self._requests = 0

    @classmethod
    async def start(cls, command: WorkerCommand, folder: Path) -> "WorkerProcess":
        """Start the process with this folder as its current and its home folder.

        Raises:
            WorkerError: the log cannot be written, or the interpreter cannot be started.
        """
        with _opened_log(command) as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    os.fspath(command.interpreter),
                    worker_loop.__file__,
                    os.fspath(command.worker.resolve()),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    cwd=folder,
                    env=worker_environment(folder),
                    limit=_LONGEST_LINE,
                    start_new_session=True,  # Ctrl-C goes to the run alone, and what the package starts ends with it
                )
            except OSError as error:
                problem = f"{command.interpreter} cannot be started ({error.strerror})"
                raise WorkerError(f"{command.name}: {problem}") from error
        return cls(command, process)

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's as well."""
        return self._process.pid

    async def request(
        self, op: str, fields: Mapping[str, Json], *, limit_s: float, quiet_s: Callable[[], float] | None = None
    ) -> Mapping[str, Any]:
        """Send a request and wait for its result.

        Args:
            op: of the protocol.
            fields: of the request.
            limit_s: seconds without a reply after which the worker counts as hung.
            quiet_s: seconds since the worker last called the backbone, 0 while a call is under way: time in which it
                waits for the backbone does not count.

        Returns:
            The reply's ``result``.

        Raises:
            WorkerEndedError: the worker ended without a reply.
            WorkerError: it raised, hangs, or its reply is none; the process is not usable any more.
        """
        self._requests += 1
        line = json.dumps({"id": self._requests, "op": op, **fields}).encode() + b"\n"
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it has ended: reading says so
            self._process.stdin.write(line)
            await self._process.stdin.drain()
        return self._result(op, await self._read(op, limit_s, quiet_s))

    async def _read(self, op: str, limit_s: float, quiet_s: Callable[[], float] | None) -> bytes:
        assert self._process.stdout is not None
        begun = time.monotonic()
        read = asyncio.ensure_future(self._process.stdout.readline())
        try:
            while not read.done():
                waited = time.monotonic() - begun
                left = limit_s - (min(waited, quiet_s()) if quiet_s else waited)
                if left <= 0:
                    raise WorkerError(self._said(f"no reply to {op!r} within {limit_s:g} s"))
                await asyncio.wait({read}, timeout=left)
        finally:
            read.cancel()
        try:
            return read.result()
        except (ValueError, ConnectionError) as error:
            raise WorkerError(self._said(f"its reply to {op!r} is not a line ({error})")) from error

    def _result(self, op: str, line: bytes) -> Mapping[str, Any]:
        if not line.endswith(b"\n"):
            raise WorkerEndedError(self._said(f"it ended before it replied to {op!r}"))
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise WorkerError(self._said(f"its reply to {op!r} is not JSON: {line[:_SHOWN_CHARS]!r}")) from error
        if not isinstance(reply, dict) or reply.get("id") != self._requests:
            raise WorkerError(self._said(f"its reply to {op!r} answers another request: {line[:_SHOWN_CHARS]!r}"))
        if "error" in reply:
            raise WorkerError(self._said(f"{op!r} failed: {reply['error']}"))
        if not isinstance(reply.get("result"), dict):
            raise WorkerError(self._said(f"its reply to {op!r} has no result: {line[:_SHOWN_CHARS]!r}"))
        result: Mapping[str, Any] = reply["result"]
        return result

    def _said(self, problem: str) -> str:
        """Return a problem with the last lines of the worker's log."""
        try:
            written = self._command.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            written = []
        last = " | ".join(line.strip()[:_SHOWN_CHARS] for line in written[-_SHOWN_LINES:])
        return f"worker {self._command.name}: {problem}; its log {self._command.log} ends: {last or 'empty'}"

    async def close(self) -> None:
        """End the process and all that it started; safe to call twice and after it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
                while await self._process.stdout.read(1 << 16):
                    pass  # the pipe's transport closes at its end


def _opened_log(command: WorkerCommand) -> BinaryIO:
    try:
        command.log.parent.mkdir(parents=True, exist_ok=True)
        return command.log.open("ab")
    except OSError as error:
        raise WorkerError(
            f"{command.name}: the worker's log {command.log} cannot be written ({error.strerror}); free space, or make "
            "its folder writable"
        ) from error


def worker_environment(folder: Path) -> dict[str, str]:
    """Return a worker's environment: no credentials, one hash seed, files of the package in its own folder."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    home = os.fspath(folder)
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False"}
    return {**kept, **offline, "HOME": home, "TMPDIR": home, "TZ": "UTC", "PYTHONHASHSEED": "0", "NO_PROXY": "*"}
