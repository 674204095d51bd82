"""Mem0: the memory of its config, and the calls that it is expected to make."""

from baselines.mem0.calls import context_tokens, expected_calls
from baselines.mem0.config import Mem0Config
from baselines.mem0.memory import Mem0Memory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: Mem0Config, parts: Parts) -> Mem0Memory:
    """Make the empty memory of one conversation."""
    return Mem0Memory(config, parts)
