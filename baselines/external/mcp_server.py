"""The tools of an MCP server as a memory, through the official client library (package ``mcp``).

Two named tools store and search, or an agent is offered all tools: the backbone chooses one call after the other. The
connection lives in a task of its own, because the library closes it in the task that opened it.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baselines.external.config import McpConfig
from baselines.external.found import read_found
from baselines.external.store import Found, Item
from baselines.external.tool_schemas import calls_schema, readable_calls, without_nulls
from memsys.credentials import redacted
from memsys.errors import AssetError, MemoryProtocolError, MemoryServerError, quoted
from memsys.extras import need_package
from memsys.llm.contract import Role
from memsys.llm.roles import check_role_names, make_role
from memsys.protocol import Parts
from memsys.vocabulary import Json

if TYPE_CHECKING:
    from mcp import ClientSession

_PROMPTS = Path(__file__).parent / "prompts"
#: What ends the agent's calls.
_DONE = "done"
_NO_CALLS = "none"
#: Keys of a call's arguments that name what it stores.
_NAMES = ("name", "entityName", "title", "id", "key", "permalink", "identifier")
#: Seconds until a server that is told to stop has stopped; then its connection is given up.
_STOP_SECONDS = 10.0
#: Code of the client library's own error for a server that is gone.
_CONNECTION_CLOSED = -32000
#: What the client library, and servers made with its other half, call a session that a server by URL does not know.
_SESSIONS_LOST = ("session terminated", "session not found")
#: Characters of a result that the agent is shown.
_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool.

    Attributes:
        text: of all its parts, a line each.
        values: the same as values: as the server structures it, where it does, then its parts, each read as JSON where
            it is; empty for a result without parts.
        failed: whether the server calls it an error.
    """

    text: str
    values: Sequence[Any]
    failed: bool


@dataclass(slots=True)
class _Agent:
    """Calls of one item or question so far."""

    calls: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)


class McpStore:
    """The memory of one conversation behind an MCP server, which runs for this conversation alone."""

    def __init__(self, config: McpConfig, parts: Parts) -> None:
        self._config, self._llm = config, parts.llm
        self._connection = _Connection(config)
        self._counts = {"calls": 0, "failed_calls": 0, "unreadable_replies": 0, "unfinished": 0}
        self._roles: Mapping[str, Role] = {}
        self._first = ""
        self._first_found = self._asked = False

    async def open(self, lent: Mapping[str, Json]) -> None:
        """Start the server.

        Raises:
            AssetError: the client library or the server's program is missing.
            MemoryProtocolError: the server has no such tool, or does not start.
        """
        need_package("mcp", "mcp", "memory=mcp")
        await self._connection.open(lent)
        tools = self._connection.tools
        for setting in ("write_tool", "search_tool"):
            named = getattr(self._config, setting)
            if named is not None and named not in tools:
                raise MemoryProtocolError(f"memory.{setting}={named}: the server has {', '.join(tools)}")
        check_role_names(self._config.roles, ("write", "search"))
        schema = calls_schema({name: tool.input_schema for name, tool in tools.items()}, _DONE)
        readable = readable_calls(list(tools), _DONE)
        self._roles = {
            name: replace(make_role(name, each, _PROMPTS, schema), accepts=readable)
            for name, each in self._config.roles.items()
        }

    async def add(self, item: Item) -> Sequence[str]:
        """Store an item; returns the names that the calls gave to what they stored."""
        if self._config.write_tool is None:
            return (await self._ask("write", item.text, item.key)).named
        values = {"text": item.text, "key": item.key, "date": item.date, "speaker": item.turns[0].speaker}
        result = await self._call(self._config.write_tool, _filled(self._config.write_arguments or {}, values))
        if result.failed:
            raise MemoryProtocolError(f"memory.write_tool={self._config.write_tool}: {result.text[:300]}")
        if not self._first:
            self._first = item.text
            await self._check_kept()
        return names_in(list(result.values))

    async def settle(self) -> None:
        """Do nothing: the protocol does not say when a server has indexed an item."""

    async def search(self, query: str, k: int) -> Sequence[Found]:
        """Search by the tool, or let the agent search; what its calls returned is found, in their order."""
        if self._config.search_tool is None:
            results = (await self._ask("search", query, query)).results
            return [found for result in results if not result.failed for found in shown_in(result)]
        found = await self._searched(query, k)
        if not (self._asked and found):
            await self._check_kept()
            self._asked = True
        return found

    async def _searched(self, query: str, k: int) -> Sequence[Found]:
        tool, template = self._config.search_tool or "", self._config.search_arguments or {}
        result = await self._call(tool, _filled(template, {"query": query, "k": k}))
        if result.failed:
            raise MemoryProtocolError(f"memory.search_tool={tool}: {result.text[:300]}")
        return found_in(result, f"memory.search_tool={tool}: its result for memory.search_arguments={dict(template)}")

    async def _check_kept(self) -> None:
        """Search a server by URL, which may be started again unseen, for the first text that was written.

        Raises:
            MemoryServerError: something was found once, and nothing is found now.
        """
        if not (self._config.url and self._config.search_tool and self._first):
            return
        if await self._searched(self._first, 1):
            self._first_found = True
        elif self._first_found:
            raise MemoryServerError(
                f"memory.url={self._config.url} finds nothing for the first text that was written, and found something "
                "before: it has lost what it held, as a server that is started again; the same command writes it again"
            )

    def statistics(self) -> Mapping[str, Json]:
        """Return the numbers of calls of tools, those that failed, and replies of the agent that named no call."""
        return {**self._counts, "tools": len(self._connection.tools)}

    async def close(self) -> None:
        """Stop the server."""
        await self._connection.close()

    async def _ask(self, role: str, text: str, key: str) -> _Agent:
        """Let the backbone call tools until it is done or ``steps`` are over."""
        agent = _Agent()
        for step in range(self._config.steps):
            values = {
                "tools": self._connection.described,
                "text": text,
                "calls": "\n".join(agent.calls) or _NO_CALLS,
            }
            reply = await self._llm.ask(self._roles[role], values, key=f"{key}/{step}")
            if reply.value is None:
                self._counts["unreadable_replies"] += 1
                break
            name = reply.value["call"]["tool"]
            if name == _DONE:
                break
            arguments = without_nulls(reply.value["call"]["arguments"], self._connection.tools[name].input_schema)
            result = await self._call(name, arguments)
            agent.results.append(result)
            agent.named += names_in(arguments)
            shown = result.text[:_SHOWN]
            agent.calls.append(f"{name}({json.dumps(arguments, ensure_ascii=False)}) -> {shown}")
        else:
            self._counts["unfinished"] += 1
        return agent

    async def _call(self, name: str, arguments: Mapping[str, Json]) -> ToolResult:
        self._counts["calls"] += 1
        result = await self._connection.call(name, arguments)
        self._counts["failed_calls"] += result.failed
        return result


class _Connection:
    """A session with a server, opened and closed in one task."""

    def __init__(self, config: McpConfig) -> None:
        self._config = config
        self._folder = ""
        self._values: Mapping[str, Json] = {}
        self._session: ClientSession | None = None
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.tools: Mapping[str, Any] = {}

    @property
    def described(self) -> str:
        """Return the tools as the agent reads them."""
        said = {name: " ".join((tool.description or "").split()) for name, tool in self.tools.items()}
        return "\n".join(
            f"- {name}: {said[name]} {json.dumps(tool.input_schema, ensure_ascii=False)}"
            for name, tool in self.tools.items()
        )

    async def open(self, lent: Mapping[str, Json]) -> None:
        """Start, and wait until the tools are known."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._folder = tempfile.mkdtemp(prefix="memsys-mcp-")
        self._values = {"folder": self._folder, **lent}
        self._task = asyncio.create_task(self._live(ready))
        self._task.add_done_callback(partial(self._ended, ready))
        try:
            await asyncio.wait_for(asyncio.shield(ready), self._config.start_timeout)
        except TimeoutError as error:
            raise MemoryProtocolError(
                f"{self._where} says nothing for {self._config.start_timeout:g} s; raise memory.start_timeout"
            ) from error

    async def call(self, name: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Call a tool; what the server refuses is a failed result, which an agent may learn from."""
        import anyio
        from mcp.shared.exceptions import MCPError

        assert self._session is not None, "open() comes first"
        try:
            given = await asyncio.wait_for(self._session.call_tool(name, dict(arguments)), self._config.timeout)
        except TimeoutError as error:
            raise MemoryProtocolError(
                f"{self._where}: {name} did not return within {self._config.timeout:g} s; raise memory.timeout"
            ) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise MemoryServerError(f"{self._where} has ended; {name} could not be called") from error
        except MCPError as error:
            if error.error.message.lower().startswith(_SESSIONS_LOST):
                raise MemoryServerError(
                    f"{self._where} no longer knows this session: it was started again and may have lost what it held; "
                    "the same command writes it again"
                ) from error
            if error.error.code == _CONNECTION_CLOSED:
                raise MemoryServerError(f"{self._where} has ended; {name} did not return") from error
            return ToolResult(redacted(str(error)), (), failed=True)
        texts = [_text(part) for part in given.content]
        values = [_unwrapped(given.structured_content)] if given.structured_content is not None else []
        if given.content:
            parts = [
                {"type": part.type} if text is None else _json(text)
                for part, text in zip(given.content, texts, strict=True)
            ]
            values.append(parts[0] if len(parts) == 1 else parts)
        return ToolResult("\n".join(filter(None, texts)), values, failed=bool(given.is_error))

    async def close(self) -> None:
        """Stop the server, and remove its folder."""
        self._ending.set()
        if self._task is not None:
            if self._session is None:  # it has not begun to answer, and may never
                self._task.cancel()
            await asyncio.wait([self._task], timeout=_STOP_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _live(self, ready: "asyncio.Future[None]") -> None:
        """Hold the connection until :meth:`close`."""
        async with AsyncExitStack() as stack:
            session = await self._connected(stack)
            self.tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            self._session = session
            ready.set_result(None)
            await self._ending.wait()

    def _ended(self, ready: "asyncio.Future[None]", task: "asyncio.Task[None]") -> None:
        """Tell who waits for the server that it did not start."""
        error = None if task.cancelled() else task.exception()
        if ready.done():
            return
        if isinstance(error, OSError):
            ready.set_exception(AssetError(f"{self._where} cannot be started: {error}"))
        else:
            ready.set_exception(MemoryProtocolError(redacted(f"{self._where} ended: {quoted(error, 300)}")))
        ready.exception()  # or asyncio would log it as never retrieved where nobody waits any more

    async def _connected(self, stack: AsyncExitStack) -> "ClientSession":
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        if self._config.url:
            streams = await stack.enter_async_context(streamable_http_client(self._config.url))
        else:
            program, *arguments = [str(_filled(part, self._values)) for part in self._config.command]
            variables = {
                key: str(_filled(text, self._values)) for key, text in (self._config.environment or {}).items()
            }
            log = stack.enter_context((Path(self._folder) / "server.log").open("w"))
            server = StdioServerParameters(command=program, args=arguments, env=variables or None)
            streams = await stack.enter_async_context(stdio_client(server, errlog=log))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        return session

    @property
    def _where(self) -> str:
        return f"memory.url={self._config.url}" if self._config.url else f"memory.command={list(self._config.command)}"


def found_in(result: ToolResult, where: str) -> list[Found]:
    """Return the results of a search, as the server structures them, else as its texts give them.

    Args:
        result: of the tool.
        where: what returned it, for messages.

    Raises:
        MemoryProtocolError: neither has a text.
    """
    problems = []
    for value in result.values:
        try:
            return read_found(value, where)
        except MemoryProtocolError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    return []


def shown_in(result: ToolResult) -> list[Found]:
    """Return what a tool that an agent chose lists, or its text where it lists nothing: any tool may say something."""
    try:
        return found_in(result, "")
    except MemoryProtocolError:
        return read_found(result.text)


def names_in(value: Json) -> list[str]:
    """Return the names of what a call stores, from anywhere in its arguments or its result."""
    if isinstance(value, Mapping):
        own = [str(value[key]) for key in _NAMES if isinstance(value.get(key), str | int)]
        return list(dict.fromkeys([*own, *(name for each in value.values() for name in names_in(each))]))
    if isinstance(value, list):
        return list(dict.fromkeys(name for each in value for name in names_in(each)))
    return []


def _filled(template: Json, values: Mapping[str, Json]) -> Any:
    """Fill ``{query}`` and the like into every text; a text that is one of them alone takes the value's type."""
    if isinstance(template, Mapping):
        return {key: _filled(each, values) for key, each in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(each, values) for each in template]
    if not isinstance(template, str):
        return template
    alone = template[1:-1]
    if template == f"{{{alone}}}" and alone in values:
        return values[alone]
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template


def _json(text: str) -> Any:
    """Return the value of a JSON text, any other text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(part: Any) -> str | None:
    """Return the text of a part of a result, or of the resource in it; ``None`` for a picture and the like."""
    text = getattr(getattr(part, "resource", part), "text", None)
    return text if isinstance(text, str) else None


def _unwrapped(structured: Any) -> Any:
    """Return what the official library wraps as ``result``, because a structured result has to be an object."""
    if not isinstance(structured, Mapping) or set(structured) != {"result"}:
        return structured
    value = structured["result"]
    return _json(value) if isinstance(value, str) else value
