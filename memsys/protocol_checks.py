"""Checks that a memory system keeps the protocol, so that one from outside fails with a sentence that names it."""

from collections.abc import Collection
from inspect import isawaitable
from typing import Any

from memsys.errors import MemoryProtocolError, quoted
from memsys.protocol import MemoryConfig, MemorySystem, Parts
from memsys.vocabulary import Hit, Retrieval

_METHODS = ("units", "prepare", "write", "consolidate", "retrieve", "state", "load_state", "statistics")


def build_memory(config: MemoryConfig, parts: Parts) -> MemorySystem:
    """Make the empty memory of one conversation, and check that it has all that a run will call, before a call is paid.

    Raises:
        MemoryProtocolError: a method is missing.
    """
    memory: Any = config.build(parts)
    missing = [name for name in _METHODS if not callable(getattr(memory, name, None))]
    if missing:
        raise MemoryProtocolError(
            f"memory={config.name}: {type(memory).__name__} lacks {', '.join(missing)}; a memory system has all "
            "methods of memsys.protocol.MemorySystem; memsys.protocol.BaseMemory provides some of them"
        )
    checked: MemorySystem = memory
    return checked


async def finished(memory: object, method: str, given: object) -> Any:
    """Wait for what a method of a memory gave.

    Raises:
        MemoryProtocolError: it gave nothing that can be waited for, as a method without ``async`` does.
    """
    if not isawaitable(given):
        raise MemoryProtocolError(
            f"{method}() of {type(memory).__name__} returned {quoted(given, 60)}; it must be written with `async def`"
        )
    return await given


def check_retrieval(memory: str, given: object, turns: Collection[str], question: str) -> Retrieval:
    """Return what a memory gave for a question, if a run can store and score it.

    Args:
        memory: name of the preset, for messages.
        given: by ``retrieve``.
        turns: ids of the conversation's turns, of which evidence is made.
        question: as messages name it.

    Raises:
        MemoryProtocolError: it is not a retrieval, its context no text, or a hit names a turn that the conversation
            does not have: the hit would count as missed evidence.
    """
    where = f"memory={memory}, question {question}"
    if not isinstance(given, Retrieval):
        raise MemoryProtocolError(f"{where}: retrieve() returned {quoted(given)}; it must return a memsys.Retrieval")
    if not isinstance(given.context, str):
        raise MemoryProtocolError(f"{where}: the context is {quoted(given.context)}; it must be a text")
    for number, hit in enumerate(given.hits, 1):
        if not isinstance(hit, Hit):
            raise MemoryProtocolError(f"{where}: hit {number} is {quoted(hit)}; it must be a memsys.Hit")
        if not isinstance(hit.turn_ids, tuple | list) or not all(isinstance(turn_id, str) for turn_id in hit.turn_ids):
            raise MemoryProtocolError(
                f"{where}: turn_ids of hit {number} are {quoted(hit.turn_ids)}; they must be a tuple of ids"
            )
        unknown = [turn_id for turn_id in hit.turn_ids if turn_id not in turns]
        if unknown:
            raise MemoryProtocolError(
                f"{where}: hit {number} says that it comes from turn {unknown[0]!r}, which the conversation does not "
                "have; turn_ids are ids of turns, memory_id is the memory's own"
            )
    return given
