"""Plain retrieval: the memory of its config, and the calls that it is expected to make."""

from baselines.rag.calls import context_tokens, expected_calls
from baselines.rag.config import RagConfig
from baselines.rag.memory import RagMemory
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: RagConfig, parts: Parts) -> RagMemory:
    """Make the empty memory of one conversation."""
    return RagMemory(config, parts)
