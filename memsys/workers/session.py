"""A worker that is running, with the proxy through which its package calls the backbone and the embedder."""

import asyncio
import hashlib
import json
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from memsys.embedding.contract import Embedder, Vectors
from memsys.embedding.wrapping import WrappedEmbedder
from memsys.errors import WorkerError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.contract import LanguageModel
from memsys.llm.passthrough import ForeignCall, complete
from memsys.llm.refusals import RequestRefusedError
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import Parts
from memsys.proxy.clients import ProxyScope
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings
from memsys.seeding import stable_seed
from memsys.vocabulary import Json
from memsys.workers.messages import PROTOCOL, WorkerDescription, read_description
from memsys.workers.process import WorkerCommand, WorkerProcess

#: Name under which a package asks for the backbone and the embedder; the proxy does not look at it.
_MODEL = "memsys"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Time limits of a worker.

    Attributes:
        start_s: until it is open.
        quiet_s: of a request, without a reply and without a call of the backbone.
    """

    start_s: float
    quiet_s: float


class CallerContext:
    """Runs what a worker asks for as a part of the step that it is working on.

    Requests arrive in tasks of the proxy. Phase and unit of a call, its share in a host's usage and the clock that
    stands while a model is loading belong to the step, which is where the context comes from.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._under_way = 0
        self._last = time.monotonic()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self, scope: CallScope) -> None:
        """Go on to the step of the current task."""
        self._context = copy_context()
        self._context.run(call_scope.set, scope)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run as a part of the present step."""
        self._under_way += 1
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        task.add_done_callback(self._note)
        return await task

    def _note(self, task: asyncio.Task[Any]) -> None:
        self._under_way -= 1
        self._last = time.monotonic()
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failed.done():
            self._failed.set_exception(error)
            self._failed.exception()  # or asyncio would log it as never retrieved where no step follows

    async def unless_failed(self, step: Coroutine[Any, Any, T]) -> T:
        """Wait for a step; give it up when something that was asked for fails, whatever the package makes of that."""
        task = asyncio.ensure_future(step)
        try:
            either: list[asyncio.Future[Any]] = [task, self._failed]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            return await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def quiet_s(self) -> float:
        """Return the seconds since the last request, 0 while one is under way."""
        return 0.0 if self._under_way else time.monotonic() - self._last


class WorkerModel:
    """The backbone as a worker's proxy sees it.

    Args:
        llm: the backbone.
        context: of the step that the worker is working on.
        package: whose requests they are.

    Attributes:
        said: what the backbone has replied in this step, as texts.
    """

    def __init__(self, llm: LanguageModel, context: CallerContext, package: str) -> None:
        self._llm, self._context, self._package = llm, context, package
        self.said: list[str] = []

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return self._llm.context_length

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """See :meth:`memsys.llm.client.BoundModel.complete`."""
        return await self._context.run(self._complete(call))

    async def _complete(self, call: ForeignCall) -> CompletedAttempt:
        try:
            answered = await complete(self._llm, call)
        except RequestRefusedError as error:
            raise RequestRefusedError(
                f"{self._package} made a request that this backbone does not take, though its server runs; correct the "
                f"package's settings, or choose another backbone: {error}"
            ) from error
        reply = answered.completion
        self.said.append(json.dumps([reply.text, [dict(one) for one in reply.tool_calls]], sort_keys=True))
        return answered

    async def count_tokens(self, text: str) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return await self._context.run(self._llm.count_tokens(text))


class WorkerEmbedder(WrappedEmbedder):
    """The embedder as a worker's proxy sees it."""

    def __init__(self, embedder: Embedder, context: CallerContext) -> None:
        super().__init__(embedder)
        self._context = context

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`memsys.embedding.contract.Embedder`."""
        return await self._context.run(super().embed(texts))


class WorkerSession:
    """An open worker; made by :meth:`open`, ended by :meth:`close`."""

    def __init__(self, parts: Parts, limits: WorkerLimits) -> None:
        self._parts, self._limits = parts, limits
        self._context = CallerContext()
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
        parts = self._parts
        self._model = model = WorkerModel(parts.llm, self._context, command.name)
        embedder = WorkerEmbedder(parts.embedder, self._context)
        behind = ProxyParts(_MODEL, lambda conversation_id: model, embedder)
        self._server = server = await stack.enter_async_context(ProxyServer(behind, proxy))
        self._client, self._log = server.clients.admit(command.name), command.log
        folder = stack.enter_context(TemporaryDirectory(prefix="memsys-worker-", ignore_cleanup_errors=True))
        self._process = await WorkerProcess.start(command, Path(folder))
        stack.push_async_callback(self._process.close)
        access: dict[str, Json] = {"base_url": server.base_url, "api_key": self._client.token, "model": _MODEL}
        opening: dict[str, Json] = {
            "protocol": PROTOCOL,
            "conversation_id": parts.conversation_id,
            "seed": stable_seed(parts.seed, parts.conversation_id, "worker"),
            "folder": folder,
            "settings": dict(settings),
            "llm": {**access, "context_length": parts.llm.context_length},
            "embedder": {**access, "dimension": parts.embedder.dimension},
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
        self._client.begin(ProxyScope(self._parts.conversation_id, scope.phase, scope.item))
        self._context.begin(scope)
        self._model.said.clear()
        step = self._process.request(op, fields, limit_s=self._limits.quiet_s, quiet_s=self._context.quiet_s)
        result = await self._context.unless_failed(step)
        self._check_answered(f"in {op!r}" + (f" of {scope.item}" if scope.item else ""))
        return result

    @property
    def replies(self) -> str:
        """Checksum of what the backbone replied in the last step, in whatever order the replies came."""
        return hashlib.sha256("\n".join(sorted(self._model.said)).encode()).hexdigest()

    def _check_answered(self, where: str) -> None:
        """Stop where the proxy gave a request no reply and the package went on: its memory may lack what that was for.

        Raises:
            WorkerError: says which request, and what to do.
        """
        failure = self._client.failure or self._server.without_access.failure  # nobody else knows this server
        if failure is not None:
            raise WorkerError(
                f"{self._client.name}: {where}, conversation {self._parts.conversation_id}, a request of the package "
                f"got no reply, and the package went on without it: {failure}. Correct that (memory.settings, "
                f"memory.proxy, or the worker) and start the same command again; its log is {self._log}"
            ) from failure

    async def close(self) -> None:
        """End the worker, then its proxy, and delete the worker's folder."""
        await self._stack.aclose()
