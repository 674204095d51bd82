"""MemoryOS: the memory of its config, and the calls that it is expected to make."""

from baselines.memoryos.calls import context_tokens, expected_calls
from baselines.memoryos.config import MemoryOSConfig
from baselines.memoryos.memory import MemoryOSMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: MemoryOSConfig, parts: Parts) -> MemoryOSMemory:
    """Make the empty memory of one conversation."""
    return MemoryOSMemory(config, parts)
