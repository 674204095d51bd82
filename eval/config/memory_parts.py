"""A memory's settings part by part: its own, and those of the system behind a gate."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def memory_parts(memory: Mapping[str, Any], path: str = "memory") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the settings of a memory and, of a gate, then those of its host, each behind its key.

    Args:
        memory: the memory config of a run.
        path: its key.
    """
    yield path, memory
    if isinstance(host := memory.get("host"), Mapping):
        yield from memory_parts(host, f"{path}.host")


def with_changed_parts(
    memory: Mapping[str, Any], change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Copy a memory's settings with a change of its own and, of a gate, of its host's."""
    changed = change(memory)
    host = memory.get("host")
    return {**changed, "host": with_changed_parts(host, change)} if isinstance(host, Mapping) else changed
