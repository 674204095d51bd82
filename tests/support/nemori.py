"""Nemori in tests: presets from their YAML, and a backbone that replies sensibly."""

from collections.abc import Mapping
from typing import Any

from baselines.nemori.config import NemoriConfig
from baselines.nemori.memory import NemoriMemory
from memsys.protocol import Parts
from memsys.vocabulary import Conversation
from tests.support import composing
from tests.support.composing import composed, memory_config
from tests.support.fakes import FakeModel, WordEmbedder
from tests.support.xmemory import sensible

#: Topic by topic, the first word of each message; the sea comes back at the end.
TALK = ("sea boat", "sea sail", "cake oven", "cake sugar", "cake flour", "song band", "sea wind", "sea fish")


def dutiful(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
    """Reply as a dutiful backbone: groups by first word, merges with the first candidate of the same title."""
    if role == "segment":
        groups: dict[str, list[int]] = {}
        for number, line in enumerate(values["messages"].splitlines(), start=1):
            groups.setdefault(line.rpartition(": ")[2].split()[0], []).append(number)
        return {"episodes": [{"indices": found, "topic": topic} for topic, found in groups.items()]}
    if role == "decide_merge":
        title = _title(values["episode"].splitlines()[0])
        named = [line.partition(": ") for line in values["candidates"].splitlines() if ": " in line]
        known = [name for name, _, told in named if _title(told) == title]
        return {"decision": "merge" if known else "new", "target": (known or [""])[0], "reason": "same"}
    if role == "merge":
        stories = [values[name].partition("\n")[2] for name in ("stored", "new")]
        title = _title(values["new"].splitlines()[0])
        return {"title": title, "content": " then ".join(stories), "timestamp": "2023-05-01T10:00:00"}
    if role == "calibrate":
        return {"statements": [line.partition("] ")[2] or line for line in values["messages"].splitlines()]}
    return sensible(role, values, key)


def _title(line: str) -> str:
    return line.partition("] ")[2]


def replying(**sayings: Any) -> FakeModel:
    """Make a backbone that is dutiful but for some roles; a saying may be a function of (values, key)."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        if role not in sayings:
            return dutiful(role, values, key)
        saying: Any = sayings[role]
        replied: Mapping[str, Any] | str = saying(values, key) if callable(saying) else saying
        return replied

    return FakeModel(function)


def preset(name: str = "nemori", **changes: Any) -> NemoriConfig:
    """Make the config of a preset; a change of a group (a mapping) is merged into it."""
    settings = composed(name)
    merged = {
        key: {**settings[key], **value} if isinstance(value, Mapping) and key != "roles" else value
        for key, value in changes.items()
    }
    config = memory_config(name, **merged)
    assert isinstance(config, NemoriConfig)
    return config


def memory(config: NemoriConfig, model: FakeModel | None = None, embedder: Any = None) -> NemoriMemory:
    """Make an empty memory."""
    return NemoriMemory(config, Parts("c", model or replying(), embedder or WordEmbedder(), seed=1))


def ingest(system: NemoriMemory, conversation: Conversation) -> NemoriMemory:
    """Write a conversation and consolidate."""
    composing.ingest(system, conversation)
    return system


def model_of(system: NemoriMemory) -> FakeModel:
    """Return the backbone of a memory."""
    model = system._parts.llm
    assert isinstance(model, FakeModel)
    return model


def counts_of(system: NemoriMemory) -> Mapping[str, int]:
    """Return what a memory counted."""
    counts: Mapping[str, int] = system.statistics()["counts"]
    return counts


def blocks_of(system: NemoriMemory) -> list[list[str]]:
    """Return the turns of each episode that can be found."""
    store = system._store
    return [list(store.episodes[name].turn_ids) for name in store.episode_index.ids]


def facts_of(system: NemoriMemory) -> dict[str, list[str]]:
    """Return the facts by the episode that they were learnt from."""
    facts: dict[str, list[str]] = {episode_id: [] for episode_id in system._store.episodes}
    for fact in system._store.facts.values():
        facts[fact.episode_id].append(fact.text)
    return facts
