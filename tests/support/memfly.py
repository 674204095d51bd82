"""MemFly in tests: presets, a backbone that says what it is told, and turns."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from memsys.memfly.config import MemflyConfig
from memsys.memfly.memory import MemflyMemory
from memsys.protocol import Parts
from memsys.vocabulary import Retrieval, Turn, Unit
from tests.support.composing import composed
from tests.support.fakes import FakeModel, WordEmbedder


def preset(name: str = "memfly", **groups: Any) -> MemflyConfig:
    """Make the config of a preset; a mapping given for a group changes some of its settings."""
    settings = dict(composed(name))
    settings.pop("_target_")
    for group, change in groups.items():
        settings[group] = {**settings[group], **change} if isinstance(change, Mapping) else change
    return MemflyConfig(**settings)


def relation(
    number: int = 1, kind: str = "RELATED_TO", strength: float = 0.0, text: str = "", operation: str = "APPEND"
) -> dict[str, Any]:
    """Make an entry of a reply of the role ``update``."""
    return {
        "candidate_id": number,
        "relation_type": kind,
        "connection_strength": strength,
        "operation": operation,
        "updated_context": text,
    }


def relations(*entries: dict[str, Any]) -> dict[str, Any]:
    """Make a reply of the role ``update``."""
    return {"relations": list(entries)}


def dutiful(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
    """Reply sensibly: every word is a keyword, nothing is related, everything suffices."""
    if role == "ingest":
        spoken = values["content"].partition(": ")[2]
        return {"keywords": spoken.split()[:5], "context": f"{spoken}."}
    if role == "update":
        return relations()
    if role == "intent":
        spoken = values["question"].rstrip("?")
        return {"topic_desc": spoken, "keywords": spoken.split()}
    if role == "sufficient":
        return {"sufficient": True, "missing_info": "", "confidence": 0.9}
    return "None" if role == "subquery" else "a draft"


def replying(**replies: Any) -> FakeModel:
    """Make a model that is :func:`dutiful` but for some roles: a reply, or a function of values and key."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        reply = replies.get(role)
        if reply is None:
            return dutiful(role, values, key)
        return reply(values, key) if callable(reply) else reply  # type: ignore[no-any-return]

    return FakeModel(function)


def in_turn(*replies: Any) -> Any:
    """Give one reply after the other, the last one for ever."""
    left = list(replies)
    return lambda values, key: left.pop(0) if len(left) > 1 else left[0]


def memory(model: FakeModel | None = None, config: MemflyConfig | None = None, **parts: Any) -> MemflyMemory:
    """Make an empty memory."""
    embedder = parts.pop("embedder", None) or WordEmbedder()
    made = Parts(**{"conversation_id": "c", "llm": model or replying(), "embedder": embedder, "seed": 1, **parts})
    return MemflyMemory(config or preset(), made)


def unit(number: int, text: str, session: int = 1, speaker: str = "Ann") -> Unit:
    """Make the unit of a turn; session n is on the n-th of May."""
    turn = Turn(f"D{session}:{number}", f"session_{session}", speaker, text, date_time=f"{session} May 2023")
    return Unit(turn.turn_id, (turn,))


def write_all(system: MemflyMemory, units: Sequence[Unit]) -> None:
    """Prepare and write units in order."""

    async def run() -> None:
        for each in units:
            await system.write(each, await system.prepare(each))

    asyncio.run(run())


def told(*texts: str, model: FakeModel | None = None, config: MemflyConfig | None = None) -> MemflyMemory:
    """Make a memory of these turns, consolidated."""
    system = memory(model, config)
    write_all(system, [unit(number, text) for number, text in enumerate(texts)])
    asyncio.run(system.consolidate())
    return system


def retrieve(system: MemflyMemory, question: str = "boat sea?") -> Retrieval:
    """Ask a memory."""
    return asyncio.run(system.retrieve(question))


def counts(system: MemflyMemory) -> Mapping[str, int]:
    """Return the counts of a memory's statistics."""
    found: Mapping[str, int] = system.statistics()["counts"]
    return found
