"""CLAG: the memory of its config, and the calls that it is expected to make."""

from memsys.clag.calls import context_tokens, expected_calls
from memsys.clag.config import ClagConfig
from memsys.clag.memory import ClagMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: ClagConfig, parts: Parts) -> ClagMemory:
    """Make the empty memory of one conversation."""
    return ClagMemory(config, parts)
