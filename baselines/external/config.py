"""Settings of memories that are not written for this protocol; their presets are ``object``, ``http`` and ``mcp``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from baselines.external.digests import UNPICKLABLE, digest_of
from baselines.external.given import LENT, asks_for_models, find_object
from memsys.credentials import check_url, check_variable
from memsys.errors import ConfigError
from memsys.proxy.server import ProxySettings
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

AddedUnit = Literal["turn", "session"]
Dates = Literal["text", "apart"]


@dataclass(frozen=True, kw_only=True)
class ExternalConfig(SystemConfig):
    """Settings that all of them have.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        k: results that a search is asked for, and the most that are taken.
        unit: what one call of ``add`` writes: a turn, or the turns of a session.
        dates: ``text`` writes a turn's date before its text, ``apart`` gives it as a field of its own alone.
        proxy: fields of :class:`memsys.proxy.server.ProxySettings` but the port, for a memory that calls the run's
            models (:attr:`lends`).
    """

    name: str
    uses_gold: bool
    k: int
    unit: AddedUnit
    dates: Dates
    proxy: Mapping[str, Json]

    def __post_init__(self) -> None:
        refuse_gold(self, "a memory from outside")
        check_choices(self, "memory", unit=AddedUnit, dates=Dates)
        check_minimum(self, "memory", k=1)
        _ = self.proxy_settings

    @property
    def proxy_settings(self) -> ProxySettings:
        """Settings of the server that the memory calls, on any free port."""
        return from_settings(ProxySettings, {"port": 0, **self.proxy}, "memory.proxy")

    @property
    def asks_by(self) -> str:
        """The setting or parameter that asks for the address of the run's models; empty where none does."""
        return ""

    @property
    def lends(self) -> bool:
        """Whether the memory is given the address of the run's backbone and embedder."""
        return bool(self.asks_by)

    @property
    def embeds(self) -> bool:
        """The run's embedder is used by a memory that is given its address."""
        return self.lends


@dataclass(frozen=True, kw_only=True)
class ObjectConfig(ExternalConfig):
    """A Python object with ``add`` and ``search``.

    Attributes:
        object: ``package.module:name`` of a class or a function that makes the memory of one conversation, or of a
            function that searches a conversation itself.
        arguments: passed to it by name.
        source: digest of its source code, so that an edited memory is another run; empty where it is not known.
        given: the object itself, in a program; ``None`` to import ``object``.
    """

    object: str
    arguments: Mapping[str, Json] | None
    source: str = ""
    given: Any = field(default=None, compare=False, repr=False)

    @property
    def asks_by(self) -> str:
        """The parameter ``base_url``, where there is one."""
        asks = asks_for_models(find_object(self.object, self.given), self.arguments)
        return LENT[0] if asks else ""

    def digest(self) -> str | None:
        """Return the digest of the object's source and settings: ``source``, if it is set; ``None`` where it has none.

        Raises:
            ConfigError: it cannot be imported.
        """
        if self.source:
            return self.source
        try:
            return digest_of(find_object(self.object, self.given))
        except UNPICKLABLE:
            return None


@dataclass(frozen=True, kw_only=True)
class HttpConfig(ExternalConfig):
    """A memory behind HTTP; ``docs/any_memory.md`` describes its four requests.

    Attributes:
        url: of the server; requests go to ``url/reset``, ``url/add``, ``url/search`` and ``url/stats``.
        api_key_env: environment variable with the bearer token; empty for none.
        timeout: seconds that one request may take.
        settle_seconds: longest wait until everything that was added is indexed (``pending`` of ``/stats`` is 0).
        lend_models: whether ``/reset`` says where the run's backbone and embedder are.
    """

    url: str
    api_key_env: str
    timeout: float
    settle_seconds: float
    lend_models: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        check_minimum(self, "memory", timeout=0.1, settle_seconds=0)
        check_url("memory.url", self.url, "http://localhost:8000")
        check_variable("memory.api_key_env", self.api_key_env or None)

    @property
    def asks_by(self) -> str:
        """The setting ``memory.lend_models``, where it is true."""
        return "memory.lend_models=true" if self.lend_models else ""


@dataclass(frozen=True, kw_only=True)
class McpConfig(ExternalConfig):
    """The tools of an MCP server as a memory.

    Attributes:
        command: that starts the server on standard input and output, with its arguments.
        url: of a server that runs already, in place of ``command``.
        environment: variables of the server's process; ``{folder}`` in a value or in ``command`` is an empty folder
            of the conversation, which is removed at its end; ``{base_url}``, ``{api_key}``, ``{model}`` and
            ``{dimension}`` are those of the run's backbone and embedder.
        write_tool: tool that stores an item, or ``null`` for an agent that is offered all tools.
        write_arguments: its arguments; ``{text}``, ``{key}``, ``{date}`` and ``{speaker}`` are filled in.
        search_tool: tool that searches, or ``null`` for an agent.
        search_arguments: its arguments; ``{query}`` and ``{k}`` are filled in.
        steps: most replies of the agent for one item or question.
        timeout: seconds that one call of a tool may take.
        start_timeout: seconds until the server has said what tools it has; `npx` may have to unpack it first.
        roles: of the agent: ``write`` and ``search``.
    """

    command: Sequence[str]
    url: str
    environment: Mapping[str, str] | None
    write_tool: str | None
    write_arguments: Mapping[str, Json] | None
    search_tool: str | None
    search_arguments: Mapping[str, Json] | None
    steps: int
    timeout: float
    start_timeout: float
    roles: Mapping[str, Json]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_minimum(self, "memory", steps=1, timeout=0.1, start_timeout=0.1)
        if not all(isinstance(part, str) for part in self.command):
            raise ConfigError(
                f"memory.command={list(self.command)} must be a list of texts; put each in quotation marks"
            )
        if bool(self.command) == bool(self.url):
            raise ConfigError(
                "memory=mcp needs either memory.url, or memory.command, as "
                "memory.command='[npx,-y,@modelcontextprotocol/server-memory]'"
            )

    @property
    def asks_by(self) -> str:
        """The first of :data:`LENT` that the command or a variable names in braces, with the braces."""
        texts = [*self.command, *(self.environment or {}).values()]
        named = [f"{{{name}}}" for name in LENT if any(f"{{{name}}}" in text for text in texts)]
        return next(iter(named), "")
