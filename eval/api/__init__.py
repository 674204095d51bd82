"""The Python interface, which ``import memsys`` shows: one memory over one's own conversation, and stored runs."""

from eval.api.blocking import Memory, open_memory
from eval.api.evaluate import Evaluation, evaluate
from eval.api.memory import AsyncMemory, open_async_memory
from eval.api.parts import endpoint
from eval.results.frame import load_results

__all__ = [
    "AsyncMemory",
    "Evaluation",
    "Memory",
    "endpoint",
    "evaluate",
    "load_results",
    "open_async_memory",
    "open_memory",
]
