"""The Python interface, which ``import memsys`` shows: one memory over one's own conversation, and stored runs."""

from eval.api.blocking import Memory, open_memory
from eval.api.memory import AsyncMemory, open_async_memory
from eval.api.parts import endpoint

__all__ = ["AsyncMemory", "Memory", "endpoint", "open_async_memory", "open_memory"]
