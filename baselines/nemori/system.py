"""Nemori: the memory of its config, and the calls that it is expected to make."""

from baselines.nemori.calls import context_tokens, expected_calls
from baselines.nemori.config import NemoriConfig
from baselines.nemori.memory import NemoriMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: NemoriConfig, parts: Parts) -> NemoriMemory:
    """Make the empty memory of one conversation."""
    return NemoriMemory(config, parts)
