"""xMemory: the memory of its config, and the calls that it is expected to make."""

from memsys.protocol import Parts
from memsys.xmemory.calls import context_tokens, expected_calls
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.memory import XMemory

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: XMemoryConfig, parts: Parts) -> XMemory:
    """Make the empty memory of one conversation."""
    return XMemory(config, parts)
