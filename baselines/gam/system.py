"""GAM: the memory of its config, and the calls that it is expected to make."""

from baselines.gam.calls import context_tokens, expected_calls
from baselines.gam.config import GamConfig
from baselines.gam.memory import GamMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: GamConfig, parts: Parts) -> GamMemory:
    """Make the empty memory of one conversation."""
    return GamMemory(config, parts)
