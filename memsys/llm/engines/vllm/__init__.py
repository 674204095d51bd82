"""vLLM as the backbone's server: started and watched here (``managed``), or running elsewhere (``attached``)."""

from memsys.llm.engines.vllm.engine import VllmEngineConfig

__all__ = ["VllmEngineConfig"]
