"""Memories from outside: which store a config has."""

from collections.abc import Sequence
from secrets import token_hex

from baselines.external.config import ExternalConfig, HttpConfig, McpConfig, ObjectConfig
from baselines.external.memory import ExternalMemory
from baselines.external.store import Store
from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls
from memsys.llm.scope import Phase
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls", "make_store"]

#: Tokens of the agent's prompt, most of which describe the tools (nine tools of `server-memory`: 1,400), and reply.
_AGENT_PROMPT, _AGENT_REPLY = 2000.0, 2.0 * SHORT_TOKENS


def build(config: ExternalConfig, parts: Parts) -> ExternalMemory:
    """Make the empty memory of one conversation, under a user name that no other run has."""
    return ExternalMemory(config, parts, make_store(config, parts, f"{parts.conversation_id}-{token_hex(4)}"))


def make_store(config: ExternalConfig, parts: Parts, user: str) -> Store:
    """Make the store of a config; the libraries of each are imported where it is used."""
    if isinstance(config, ObjectConfig):
        from baselines.external.objects import ObjectStore

        return ObjectStore(config, user)
    if isinstance(config, HttpConfig):
        from baselines.external.http_server import HttpStore

        return HttpStore(config, user)
    assert isinstance(config, McpConfig), config
    from baselines.external.mcp_server import McpStore

    return McpStore(config, parts)


def expected_calls(config: ExternalConfig, shape: DataShape) -> Sequence[ExpectedCalls] | None:
    """Return the most calls that the agent of an MCP server makes; ``None`` where the memory itself calls models."""
    if config.lends:
        return None
    if not isinstance(config, McpConfig):
        return ()
    offered: list[tuple[Phase, str, str | None, float]] = [
        ("write", "write", config.write_tool, _items(config, shape)),
        ("retrieve", "search", config.search_tool, shape.asked),
    ]
    return [
        ExpectedCalls(phase, role, number * config.steps, _AGENT_PROMPT, _AGENT_REPLY)
        for phase, role, tool, number in offered
        if tool is None
    ]


def _items(config: ExternalConfig, shape: DataShape) -> float:
    return len(shape.sessions) if config.unit == "session" else sum(shape.turns)


def context_tokens(config: ExternalConfig, shape: DataShape) -> float:
    """Return the mean tokens of ``k`` added items, which what is found may be more or less than."""
    return config.k * shape.turn_tokens * sum(shape.turns) / max(_items(config, shape), 1)
