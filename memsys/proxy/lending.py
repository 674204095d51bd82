"""A run's backbone and embedder, lent to another program: each of its calls is a part of the run's own step."""

import asyncio
import hashlib
import json
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from contextvars import copy_context
from typing import Any, TypeVar

from memsys.embedding.contract import Embedder, Vectors
from memsys.embedding.wrapping import WrappedEmbedder
from memsys.errors import MemsysError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.contract import LanguageModel
from memsys.llm.passthrough import ForeignCall, complete
from memsys.llm.refusals import RequestRefusedError
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import Parts
from memsys.proxy.clients import ProxyScope
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings
from memsys.vocabulary import Json

#: Name under which a program asks for the backbone and the embedder; the proxy does not look at it.
_MODEL = "memsys"

T = TypeVar("T")


class LentModels:
    """A proxy over a conversation's backbone and embedder; ``async with`` listens.

    Args:
        name: of the program, in messages.
        parts: the conversation's; its backbone must take calls of other programs.
        settings: of the proxy.
    """

    def __init__(self, name: str, parts: Parts, settings: ProxySettings) -> None:
        self._name, self._parts, self._settings = name, parts, settings
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "LentModels":
        """Listen, and give the program access."""
        parts = self._parts
        self._context = CallerContext()
        self._model = model = LentModel(parts.llm, self._context, self._name)
        behind = ProxyParts(_MODEL, lambda conversation_id: model, LentEmbedder(parts.embedder, self._context))
        self._server = await self._stack.enter_async_context(ProxyServer(behind, self._settings))
        self._client = self._server.clients.admit(self._name)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop listening."""
        await self._stack.aclose()

    @property
    def access(self) -> dict[str, Json]:
        """Address for a program that shows its key, key, and name of the model."""
        return {"base_url": self._server.base_url, "api_key": self._client.token, "model": _MODEL}

    @property
    def url(self) -> str:
        """Address for a program that shows no key; treat it as one."""
        return self._server.url(self._client)

    @property
    def replies(self) -> str:
        """Checksum of what the backbone replied in the last step, in whatever order the replies came."""
        return hashlib.sha256("\n".join(sorted(self._model.said)).encode()).hexdigest()

    def quiet_s(self) -> float:
        """Return the seconds since the last request, 0 while one is under way."""
        return self._context.quiet_s()

    def begin(self, scope: CallScope) -> None:
        """Go on to a step: calls that follow are booked as calls of this scope and of the current task."""
        self._client.begin(ProxyScope(self._parts.conversation_id, scope.phase, scope.item))
        self._context.begin(scope)
        self._model.said.clear()

    async def unless_failed(self, step: Coroutine[Any, Any, T]) -> T:
        """Wait for a step; give it up when a call of the program fails, whatever the program makes of that."""
        return await self._context.unless_failed(step)

    @property
    def failure(self) -> MemsysError | None:
        """Why the first request that got no reply got none; who drives the program must not continue without it."""
        return self._client.failure or self._server.without_access.failure  # no other program knows this server


class CallerContext:
    """Runs what a worker asks for as a part of the step that it is working on.

    Requests arrive in tasks of the proxy. Phase and unit of a call, its share in a host's usage and the clock that
    stops while a model is loading belong to the step, which is where the context comes from.
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


class LentModel:
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


class LentEmbedder(WrappedEmbedder):
    """The embedder as a worker's proxy sees it."""

    def __init__(self, embedder: Embedder, context: CallerContext) -> None:
        super().__init__(embedder)
        self._context = context

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`memsys.embedding.contract.Embedder`."""
        return await self._context.run(super().embed(texts))
