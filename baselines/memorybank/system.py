"""MemoryBank: the memory of its config, and the calls that it is expected to make."""

from baselines.memorybank.calls import context_tokens, expected_calls
from baselines.memorybank.config import MemoryBankConfig
from baselines.memorybank.memory import MemoryBankMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: MemoryBankConfig, parts: Parts) -> MemoryBankMemory:
    """Make the empty memory of one conversation."""
    return MemoryBankMemory(config, parts)
