"""Pruned retrieval: the memory of its config; its calls are those of plain retrieval."""

from baselines.pruned.config import PrunedRagConfig
from baselines.pruned.memory import PrunedRagMemory
from baselines.rag.calls import context_tokens, expected_calls
from memsys.protocol import Parts

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: PrunedRagConfig, parts: Parts) -> PrunedRagMemory:
    """Make the empty memory of one conversation."""
    return PrunedRagMemory(config, parts)
