"""MemFly: the memory of its config, and the calls that it is expected to make."""

from memsys.memfly.calls import context_tokens, expected_calls
from memsys.memfly.config import MemflyConfig
from memsys.memfly.memory import MemflyMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: MemflyConfig, parts: Parts) -> MemflyMemory:
    """Make the empty memory of one conversation."""
    return MemflyMemory(config, parts)
