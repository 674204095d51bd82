"""A worker that is running, with the proxy through which its package calls the backbone and the embedder."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memsys.errors import WorkerError
from memsys.llm.scope import CallScope
from memsys.protocol import Parts
from memsys.proxy.lending import LentModels
from memsys.proxy.server import ProxySettings
from memsys.seeding import stable_seed
from memsys.vocabulary import Json
from memsys.workers.messages import PROTOCOL, WorkerDescription, read_description
from memsys.workers.process import WorkerCommand, WorkerProcess


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Time limits of a worker.

    Attributes:
        start_s: until it is open.
        quiet_s: of a request, without a reply and without a call of the backbone.
    """

    start_s: float
    quiet_s: float


class WorkerSession:
    """An open worker; made by :meth:`open`, ended by :meth:`close`."""

    def __init__(self, parts: Parts, limits: WorkerLimits) -> None:
        self._parts, self._limits = parts, limits
        self._stack = AsyncExitStack()
        self.description = WorkerDescription("", "", "none", "")

    @classmethod
    async def open(
        cls,
        command: WorkerCommand,
        settings: Mapping[str, Json],
        parts: Parts,
        proxy: ProxySettings,
        limits: WorkerLimits,
    ) -> "WorkerSession":
        """Start a proxy and a worker.

        Args:
            command: what to start.
            settings: handed to the worker as they are.
            parts: the conversation's; its backbone must take calls of other programs.
            proxy: settings of the server.
            limits: of time.

        Raises:
            WorkerError: the worker does not start, or says something that is not a description.
        """
        session = cls(parts, limits)
        async with AsyncExitStack() as stack:
            await session._start(stack, command, settings, proxy)
            session._stack = stack.pop_all()
        return session

    async def _start(
        self, stack: AsyncExitStack, command: WorkerCommand, settings: Mapping[str, Json], proxy: ProxySettings
    ) -> None:
        parts, self._name, self._log = self._parts, command.name, command.log
        self._lent = lent = await stack.enter_async_context(LentModels(command.name, parts, proxy))
        folder = stack.enter_context(TemporaryDirectory(prefix="memsys-worker-", ignore_cleanup_errors=True))
        self._process = await WorkerProcess.start(command, Path(folder))
        stack.push_async_callback(self._process.close)
        opening: dict[str, Json] = {
            "protocol": PROTOCOL,
            "conversation_id": parts.conversation_id,
            "seed": stable_seed(parts.seed, parts.conversation_id, "worker"),
            "folder": folder,
            "settings": dict(settings),
            "llm": {**lent.access, "context_length": parts.llm.context_length},
            "embedder": {**lent.access, "dimension": parts.embedder.dimension},
        }
        reply = await self._process.request("open", opening, limit_s=self._limits.start_s)
        self._check_answered("while it was opened")
        self.description = read_description(reply, command.name)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    async def perform(self, op: str, fields: Mapping[str, Json], scope: CallScope) -> Mapping[str, Any]:
        """Let the worker do something.

        Args:
            op: of the protocol.
            fields: of the request.
            scope: of the calls that the package makes for it.

        Raises:
            MemsysError: a call of the backbone failed.
            WorkerError: the worker ended, raised, hangs or sent nonsense, or a request of its package was refused.
        """
        self._lent.begin(scope)
        step = self._process.request(op, fields, limit_s=self._limits.quiet_s, quiet_s=self._lent.quiet_s)
        result = await self._lent.unless_failed(step)
        self._check_answered(f"in {op!r}" + (f" of {scope.item}" if scope.item else ""))
        return result

    @property
    def replies(self) -> str:
        """Checksum of what the backbone replied in the last step, in whatever order the replies came."""
        return self._lent.replies

    def _check_answered(self, where: str) -> None:
        """Stop where the proxy gave a request no reply and the package went on: its memory may lack what that was for.

        Raises:
            WorkerError: says which request, and what to do.
        """
        failure = self._lent.failure
        if failure is not None:
            raise WorkerError(
                f"{self._name}: {where}, conversation {self._parts.conversation_id}, a request of the package "
                f"got no reply, and the package went on without it: {failure}. Correct that (memory.settings, "
                f"memory.proxy, or the worker) and start the same command again; its log is {self._log}"
            ) from failure

    async def close(self) -> None:
        """End the worker, then its proxy, and delete the worker's folder."""
        await self._stack.aclose()
