"""The backbone of memories in a retrieval-only run, or in a program that names none: every call is refused."""

from collections.abc import Mapping
from typing import NoReturn

from memsys.errors import ConfigError
from memsys.llm.contract import Role
from memsys.llm.passthrough import ForeignCall

_MODEL_FREE = "a memory that retrieves without a model (rag, bm25_turn, hybrid_turn)"


def no_backbone(memory_name: str, needs: str) -> ConfigError:
    """Return the error of a memory that needs a backbone when none is configured.

    Args:
        memory_name: as in ``memory=NAME``.
        needs: what for, as a verb with its object.
    """
    return ConfigError(
        f"memory={memory_name} {needs}, and mode=retrieval_only and open_memory(backbone=None) have none: "
        f"use mode=answers, name a backbone, or take {_MODEL_FREE}"
    )


class NoBackbone:
    """Refuses every call by name, so that no memory silently goes without its language model."""

    context_length = 0

    def __init__(self, memory_name: str) -> None:
        self._memory_name = memory_name

    def _refuse(self, needs: str) -> NoReturn:
        raise no_backbone(self._memory_name, needs)

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        self._refuse(f"calls the backbone (role {role.name})")

    async def complete(self, call: ForeignCall) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        self._refuse("calls the backbone (its package does)")

    async def count_tokens(self, text: str) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        self._refuse("counts tokens with the backbone's tokenizer")
