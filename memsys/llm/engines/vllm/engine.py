"""The ``engine:`` node of a backbone that vLLM serves: its settings, and the engine that they make."""

from dataclasses import dataclass

from memsys.llm.engines.contract import Engine
from memsys.llm.engines.vllm.attached import AttachedVllm
from memsys.llm.engines.vllm.config import VllmSettings
from memsys.llm.engines.vllm.managed import ManagedVllm
from memsys.llm.engines.vllm.server import authorization


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmEngineConfig(VllmSettings):
    """Settings that make their engine; see :class:`memsys.llm.engines.contract.EngineConfig`."""

    def check_start(self) -> None:
        """Check what a start needs; see :class:`~memsys.llm.engines.contract.ChecksStart`.

        A managed server checks what it needs when it starts.

        Raises:
            ConfigError: the key's environment variable is not set, or does not hold a key.
        """
        if self.mode == "attached":
            authorization(self.api_key_env)

    def build(self) -> Engine:
        """Make the engine without starting it."""
        return AttachedVllm(self) if self.mode == "attached" else ManagedVllm(self)
