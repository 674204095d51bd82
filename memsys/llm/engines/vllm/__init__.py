"""vLLM as the backbone's server: started and watched here (``managed``), or running elsewhere (``attached``)."""

from memsys.llm.engines.vllm.config import VllmEngineConfig

__all__ = ["VllmEngineConfig"]
