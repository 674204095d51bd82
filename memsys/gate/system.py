"""The gate: the memory of its config, and the calls that it is expected to make."""

from memsys.gate.calls import context_tokens, expected_calls
from memsys.gate.config import GatedConfig
from memsys.gate.memory import GatedMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: GatedConfig, parts: Parts) -> GatedMemory:
    """Make the empty memory of one conversation.

    Raises:
        ConfigError: the threshold was calibrated with another embedder.
    """
    config.check_embedder(parts.embedder.name)
    return GatedMemory(config, parts)
