"""No backbone: what a retrieval-only run hands to its memories."""

from collections.abc import Mapping
from typing import NoReturn

from memsys.errors import ConfigError
from memsys.llm.contract import Role
from memsys.llm.foreign import ForeignCall


class NoBackbone:
    """Refuses every call by name, so that no memory silently goes without its language model."""

    context_length = 0

    def __init__(self, memory_name: str) -> None:
        self._memory_name = memory_name

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"memory={self._memory_name} calls the backbone (role {role.name}); mode=retrieval_only has none: "
            "use mode=answers, or a memory that retrieves without a model (rag, bm25_turn, hybrid_turn)"
        )

    async def complete(self, call: ForeignCall) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"memory={self._memory_name} calls the backbone (its package does); mode=retrieval_only has none: use "
            "mode=answers, or a memory that retrieves without a model (rag, bm25_turn, hybrid_turn)"
        )

    async def count_tokens(self, text: str) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"memory={self._memory_name} counts tokens with the backbone's tokenizer; mode=retrieval_only has none"
        )
