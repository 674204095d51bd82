"""SAGE: the memory of its config, and the calls that it is expected to make."""

from memsys.protocol import Parts
from memsys.sage.calls import context_tokens, expected_calls
from memsys.sage.config import SageConfig
from memsys.sage.memory import SageMemory

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: SageConfig, parts: Parts) -> SageMemory:
    """Make the empty memory of one conversation."""
    return SageMemory(config, parts)
