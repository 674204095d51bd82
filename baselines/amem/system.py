"""A-Mem: the memory of its config, and the calls that it is expected to make."""

from baselines.amem.calls import context_tokens, expected_calls
from baselines.amem.config import AmemConfig
from baselines.amem.memory import AmemMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: AmemConfig, parts: Parts) -> AmemMemory:
    """Make the empty memory of one conversation."""
    return AmemMemory(config, parts)
