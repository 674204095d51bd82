"""LightMem: the memory of its config, and the calls that it is expected to make."""

from baselines.lightmem.calls import context_tokens, expected_calls
from baselines.lightmem.config import LightMemConfig
from baselines.lightmem.memory import LightMemMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: LightMemConfig, parts: Parts) -> LightMemMemory:
    """Make the empty memory of one conversation."""
    return LightMemMemory(config, parts)
