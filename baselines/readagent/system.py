"""ReadAgent: the memory of its config, and the calls that it is expected to make."""

from baselines.readagent.calls import context_tokens, expected_calls
from baselines.readagent.config import ReadAgentConfig
from baselines.readagent.memory import ReadAgentMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: ReadAgentConfig, parts: Parts) -> ReadAgentMemory:
    """Make the empty memory of one conversation."""
    return ReadAgentMemory(config, parts)
