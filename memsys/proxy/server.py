"""The proxy's server: OpenAI's chat completions, completions, embeddings and models on 127.0.0.1.

A program reaches it by ``http://127.0.0.1:PORT/TOKEN/v1``, or by ``http://127.0.0.1:PORT/v1`` and the token as its key.
Every call goes through the backbone as a native one does: ledger, reply cache, seed, slots, retries, budget. A reply is
there as a whole before the first event of a stream is sent.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from memsys.embedding.contract import Embedder
from memsys.errors import ConfigError, MemsysError
from memsys.llm.passthrough import CompletesCalls
from memsys.llm.scope import CallScope, Phase, call_scope
from memsys.llm.structured import clean
from memsys.proxy.clients import AskedReply, ProxyClient, ProxyClients, ProxyScope
from memsys.proxy.errors import FINAL, RefusedRequestError, error_body, status_and_code
from memsys.proxy.fields import SCOPE, check_fields
from memsys.proxy.fitting import fitted
from memsys.proxy.replies import completion_body, embedding_body, models_body, stream_events
from memsys.proxy.requests import read_completion_request, read_embedding_request, read_object, without_json_mode
from memsys.proxy.written_calls import with_written_calls
from memsys.scripts import estimated_tokens
from memsys.settings import check_choices

_LOG = logging.getLogger(__name__)
_HOST = "127.0.0.1"
#: What a program can ask the backbone or the embedder for.
_CALLS = ("/chat/completions", "/completions", "/embeddings")
_BACKLOG = 4096
#: Headers by which a program says, for one call, what it is doing.
_SCOPE_HEADERS = ("x-memsys-conversation", "x-memsys-phase", "x-memsys-item")
JsonMode = Literal["bound", "free"]
ToolCalls = Literal["served", "written"]
_CLIENT: web.RequestKey[ProxyClient] = web.RequestKey("client", ProxyClient)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Settings of the server.

    Attributes:
        port: on 127.0.0.1; 0 takes a free one.
        default_max_tokens: limit of new tokens where a program sets none; a small model may never stop by itself.
        max_body_mb: megabytes of one request.
        body_timeout_s: seconds until a request must have arrived, and its reply must have been read.
        json_mode: what ``response_format`` of the type ``json_object`` does. ``bound``: the backbone's server holds the
            reply to JSON, as that of OpenAI does; a small model may then close the object at once. ``free``: the prompt
            alone asks for JSON. A JSON schema binds in either case.
        tool_calls: what a call of a tool is. ``served``: what the backbone's server reads as one. ``written``: also an
            object of JSON in the reply with the name and the arguments of an offered tool, where the server read none.
    """

    port: int
    default_max_tokens: int
    max_body_mb: float
    body_timeout_s: float
    json_mode: JsonMode
    tool_calls: ToolCalls

    def __post_init__(self) -> None:
        check_choices(self, "proxy", json_mode=JsonMode, tool_calls=ToolCalls)
        if not 0 <= self.port < 65536:
            raise ConfigError(f"proxy port={self.port!r} must be 0 (any free one) to 65535")
        for key in ("default_max_tokens", "max_body_mb", "body_timeout_s"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"proxy {key}={getattr(self, key)!r} must be above 0")


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """Settings and models of the server.

    Attributes:
        name: of the backbone, for the list of models.
        bind: gives the backbone as a conversation sees it.
        embedder: ``None``: embeddings are refused.
        on_embedding: called after each request for embeddings with scope, texts and seconds.
        on_failure: called for each request of a program that gets an error, with scope, endpoint, status and message.
    """

    name: str
    bind: Callable[[str], CompletesCalls]
    embedder: Embedder | None
    on_embedding: Callable[[ProxyScope, Sequence[str], float], None] | None = None
    on_failure: Callable[[ProxyScope, str, int, str], None] | None = None


class ProxyServer:
    """The server; ``async with ProxyServer(parts, settings) as proxy`` listens."""

    def __init__(self, parts: ProxyParts, settings: ProxySettings) -> None:
        self._parts, self._settings = parts, settings
        self._bound: dict[str, CompletesCalls] = {}
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.clients = ProxyClients()
        #: Stands for programs that show no token of this proxy: their messages, and the first call they did not get.
        self.without_access = ProxyClient("a program without access", "")

    async def __aenter__(self) -> "ProxyServer":
        """Listen.

        Raises:
            ConfigError: the port is taken.
        """
        size = int(self._settings.max_body_mb * 1_000_000)
        app = web.Application(client_max_size=size, middlewares=[self._explain_errors, self._authenticate])
        for prefix in ("/v1", "/{token}/v1"):
            for call, handler in zip(_CALLS, (self._complete, self._complete, self._embed), strict=True):
                app.router.add_post(prefix + call, handler)
            app.router.add_get(f"{prefix}/models", self._models)
            app.router.add_put(f"{prefix}/scope", self._set_scope)
        self._runner = web.AppRunner(app, access_log=None, logger=_BelowHttp(self.without_access))
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, _HOST, self._settings.port, backlog=_BACKLOG).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(
                f"port {self._settings.port} of {_HOST} cannot be had ({error.strerror}); choose another, or 0"
            ) from error
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop listening."""
        assert self._runner is not None
        await self._runner.cleanup()

    def url(self, client: ProxyClient) -> str:
        """Return the base URL for a program that can be given no key; treat it as one."""
        return f"http://{_HOST}:{self._port}/{client.token}/v1"

    @property
    def base_url(self) -> str:
        """Base URL for a program that shows its token as its key."""
        return f"http://{_HOST}:{self._port}/v1"

    @web.middleware
    async def _explain_errors(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Turn errors into OpenAI's shape, and say in the log what the program did wrong or what failed."""
        try:
            return await handler(request)
        except RefusedRequestError as error:
            message = f"{_endpoint(request)} was refused: {error}"
            self._complain(request, message)
            _keep_failure(request, MemsysError(message))
            self._note_failure(request, error.status, str(error))
            return _error(error.status, error_body(str(error), error.status, error.param, error.code))
        except web.HTTPException as error:  # no failure: a program may find out by it what is served
            message = f"{request.method} is not served at this address: {error.reason}"
            self._complain(request, f"{message} ({_endpoint(request)})")
            return _error(error.status, error_body(message, error.status))
        except TimeoutError:
            message = f"no whole request within {self._settings.body_timeout_s:g} s"
            self._complain(request, message)
            _keep_failure(request, MemsysError(message))
            self._note_failure(request, 408, message)
            return _error(408, error_body(message, 408))
        except ConnectionError:
            message = "it disconnected before its request was complete"
            self._complain(request, message)
            return _error(400, error_body(message, 400))  # the client is gone
        except MemsysError as error:
            _keep_failure(request, error)
            self._complain(request, f"a call failed: {error}")
            status, code = status_and_code(error)
            self._note_failure(request, status, str(error))
            return _error(status, error_body(str(error), status, code=code))
        except Exception as error:  # noqa: BLE001 - a fault of ours, after which the program must not go on unanswered
            return self._own_fault(request, error)

    def _own_fault(self, request: web.Request, error: Exception) -> web.Response:
        """Return the reply to a program when the proxy itself failed; the traceback is logged at level DEBUG."""
        message = f"a fault of the proxy, {type(error).__name__}: {error}; please report it"
        _LOG.debug("%s", _endpoint(request), exc_info=error)
        self._complain(request, f"{_endpoint(request)} was not answered: {message}")
        failure = MemsysError(message)
        failure.__cause__ = error
        _keep_failure(request, failure)
        self._note_failure(request, 500, message)
        return _error(500, error_body(message, 500))

    @web.middleware
    async def _authenticate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        first, _, rest = request.path.removeprefix("/").partition("/")
        in_address = first if rest.startswith("v1/") else ""
        shown = in_address or request.headers.get("Authorization", "").removeprefix("Bearer ")
        client = self.clients.find(shown)
        if client is None:
            if request.method == "POST" and _endpoint(request) in _CALLS:
                failure = f"{_endpoint(request)} was refused: its key is not the one that the worker was given"
                self.without_access.failure = self.without_access.failure or MemsysError(failure)
            raise RefusedRequestError(
                "the token is not one of this proxy; use the address or the key that it printed",
                status=401,
                code="invalid_api_key",
            )
        request[_CLIENT] = client
        return await handler(request)

    def _note_failure(self, request: web.Request, status: int, message: str) -> None:
        client = request.get(_CLIENT)
        if client is None or self._parts.on_failure is None:
            return
        try:
            scope = _scope(request)
        except RefusedRequestError:  # which is what failed
            scope = client.scope
        try:
            self._parts.on_failure(scope, _endpoint(request), status, message)
        except MemsysError as error:  # the disk is full: the program gets the first error all the same
            client.complain(str(error))

    def _complain(self, request: web.Request, message: str) -> None:
        request.get(_CLIENT, self.without_access).complain(message)

    async def _read(self, request: web.Request) -> Any:
        try:
            async with asyncio.timeout(self._settings.body_timeout_s):
                data = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise RefusedRequestError(
                f"the request's body is larger than {self._settings.max_body_mb:g} MB, the limit; send less, or raise "
                "max_body_mb (in eval/running/proxy/proxy.yaml, for a package memory.proxy.max_body_mb)",
                status=413,
            ) from error
        return read_object(data)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await self._read(request)
        if self._settings.json_mode == "free":
            body = without_json_mode(body)
        asked = read_completion_request(_endpoint(request), body, self._settings.default_max_tokens)
        client, scope = request[_CLIENT], _scope(request)
        if asked.ignored:
            client.complain(f"fields that are not passed on: {', '.join(asked.ignored)}")
        call_scope.set(CallScope(scope.phase, scope.item))
        model = self._model(scope.conversation_id)
        fitting = await fitted(asked, model)
        if fitting is not asked:
            client.complain(
                f"max_tokens={asked.call.max_tokens} and the prompt do not fit into the context of "
                f"{model.context_length} tokens (backbone.context_length); the limit is cut to what is left"
            )
        reply = client.ask(
            fitting,
            scope,
            lambda calls: asyncio.gather(*(model.complete(call) for call in calls)),
            lambda: _has_left(request),
        )
        try:
            answered = await reply.completed
        except MemsysError:
            client.got(reply)
            raise
        if _has_left(request):
            client.complain("it disconnected before its reply was ready; the reply is kept in case it retries")
            return web.Response()  # the client is gone
        if self._settings.tool_calls == "written":
            answered = [with_written_calls(one, body) for one in answered]
        if asked.stream:
            return await self._stream(request, reply, stream_events(asked, answered, int(time.time())))
        client.got(reply)
        return web.json_response(completion_body(asked, answered, int(time.time())))

    async def _stream(self, request: web.Request, reply: AskedReply, events: Iterable[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        try:
            await response.prepare(request)
            async with asyncio.timeout(self._settings.body_timeout_s):
                await response.write(b"".join(events))
                await response.write_eof()
            request[_CLIENT].got(reply)
        except (TimeoutError, ConnectionError):
            # Nothing else can be said on this connection once the head is sent.
            request[_CLIENT].complain("it hung up, or stopped reading, within a stream")
            if request.transport is not None:
                request.transport.close()
        return response

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        asked = read_embedding_request(await self._read(request))
        client, scope, embedder = request[_CLIENT], _scope(request), self._parts.embedder
        if embedder is None:
            raise RefusedRequestError("this run has no embedder")
        if asked.dimensions not in (None, embedder.dimension):
            raise RefusedRequestError(
                f"dimensions={asked.dimensions}, but the embedder {embedder.name} has {embedder.dimension}; tell the "
                "program so",
                param="dimensions",
            )
        begun = time.perf_counter()
        vectors = await embedder.embed(asked.texts)
        client.embedded += len(asked.texts)
        if self._parts.on_embedding is not None:
            self._parts.on_embedding(scope, asked.texts, time.perf_counter() - begun)
        tokens = sum(map(estimated_tokens, asked.texts))
        return web.json_response(embedding_body(asked, vectors, tokens))

    async def _models(self, request: web.Request) -> web.StreamResponse:
        embedder = self._parts.embedder
        return web.json_response(models_body([self._parts.name, *([embedder.name] if embedder else [])]))

    async def _set_scope(self, request: web.Request) -> web.StreamResponse:
        """Let the program, or who drives it, say what the calls that follow are for."""
        body = await self._read(request)
        if unknown := set(body) - set(ProxyScope.__slots__):
            raise RefusedRequestError(f"unknown are {', '.join(sorted(unknown))}; {', '.join(ProxyScope.__slots__)}")
        check_fields(body, SCOPE)
        named: dict[str, Any] = {name: value for name, value in body.items() if value is not None}
        client = request[_CLIENT]
        client.scope = _checked(replace(client.scope, **named))
        return web.json_response({"scope": body})

    def _model(self, conversation_id: str) -> CompletesCalls:
        if conversation_id not in self._bound:
            self._bound[conversation_id] = self._parts.bind(conversation_id)
        return self._bound[conversation_id]


class _BelowHttp:
    """Takes what aiohttp logs of connections: one line for a client that speaks no HTTP, in place of a traceback."""

    def __init__(self, client: ProxyClient) -> None:
        self._client = client

    def debug(self, message: str, *args: object, exc_info: object = None, **_: object) -> None:
        """Log malformed requests; nothing else that comes at this level."""
        if isinstance(exc_info, HttpProcessingError):
            self.exception(message, *args, exc_info=exc_info)

    def exception(self, message: str, *args: object, exc_info: object = None, **_: object) -> None:
        """Log malformed requests and failures below the proxy's own code."""
        lines = str(getattr(exc_info, "message", exc_info)).strip().splitlines() or [""]
        if isinstance(exc_info, HttpProcessingError):
            self._client.complain(f"what it sent is not an HTTP request ({lines[0][:100].rstrip(':')}); it was refused")
            return
        error = exc_info if isinstance(exc_info, BaseException) else None
        _LOG.debug(message, *args, exc_info=error)
        self._client.complain(f"a connection failed: {type(exc_info).__name__}: {lines[0][:200]}")


def _has_left(request: web.Request) -> bool:
    """Return whether the program has closed the connection."""
    return request.transport is None or request.transport.is_closing()


def _keep_failure(request: web.Request, failure: MemsysError) -> None:
    """Keep the first failure of a program, for who drives it: the program may continue as if nothing had happened."""
    client = request.get(_CLIENT)
    if client is not None:
        client.failure = client.failure or failure


def _endpoint(request: web.Request) -> str:
    """Return the part of the address behind ``/v1``: what precedes it may be a token, which no log shows.

    The last ``/v1/`` is meant: a token may begin with these letters.
    """
    _, found, call = request.path.rpartition("/v1/")
    return f"/{call}" if found else "an address without /v1"


def _scope(request: web.Request) -> ProxyScope:
    """Return the scope of a request: from its headers, else the step that the program announced."""
    scope = request[_CLIENT].scope
    conversation, phase, item = (request.headers.get(name) for name in _SCOPE_HEADERS)
    if conversation is None and phase is None and item is None:
        return scope
    named: Any = phase or scope.phase
    return _checked(ProxyScope(conversation or scope.conversation_id, named, scope.item if item is None else item))


def _checked(scope: ProxyScope) -> ProxyScope:
    if scope.phase not in get_args(Phase):
        raise RefusedRequestError(f"phase={scope.phase!r}; choose one of {', '.join(get_args(Phase))}")
    for what, name in (("conversation", scope.conversation_id), ("item", scope.item)):
        if clean(name) != name:  # no file could hold it, so that a call that is paid could not be noted
            raise RefusedRequestError(f"the name of the {what} is not UTF-8; send it in that encoding")
    return scope


def _error(status: int, body: Any) -> web.Response:
    return web.json_response(body, status=status, headers=dict(FINAL))
