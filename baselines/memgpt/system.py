"""MemGPT: the memory of its configs, and the calls that it is expected to make."""

from baselines.memgpt.calls import context_tokens, expected_calls
from baselines.memgpt.code_config import MemGptCodeConfig
from baselines.memgpt.code_memory import MemGptCodeMemory
from baselines.memgpt.config import MemGptConfig
from baselines.memgpt.memory import MemGptMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: MemGptConfig, parts: Parts) -> MemGptMemory | MemGptCodeMemory:
    """Make the empty memory of one conversation: the released agent's for its own config, else the paper's."""
    return MemGptCodeMemory(config, parts) if isinstance(config, MemGptCodeConfig) else MemGptMemory(config, parts)
