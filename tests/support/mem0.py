"""Mem0 in tests: presets, and a backbone with given facts, events and relations."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from baselines.mem0.config import Mem0Config
from baselines.mem0.memory import Mem0Memory
from memsys.embedding.contract import Embedder
from memsys.protocol import Parts
from tests.support.composing import memory_config
from tests.support.fakes import FakeModel, WordEmbedder


def config(name: str = "mem0", **changes: Any) -> Mem0Config:
    """Make the config of a preset with some settings changed."""
    made = memory_config(name, **changes)
    assert isinstance(made, Mem0Config)
    return made


def mem0(model: FakeModel, preset: str = "mem0", embedder: Embedder | None = None, **changes: Any) -> Mem0Memory:
    """Make an empty memory of a preset."""
    return Mem0Memory(config(preset, **changes), Parts("c", model, embedder or WordEmbedder(), seed=1))


def spoken_facts(values: Mapping[str, str], key: str) -> dict[str, Any]:
    """Each of the user's messages is a fact."""
    lines = [line for line in values["messages"].splitlines() if line.startswith("user: ")]
    return {"facts": [line.removeprefix("user: ").partition(": ")[2] for line in lines]}


def add_all(values: Mapping[str, str], key: str) -> dict[str, Any]:
    """Every fact is new."""
    return events(*(("ADD", "new", text) for text in json.loads(values["facts"])))


def events(*items: Sequence[str]) -> dict[str, Any]:
    """Make a reply of ``route`` from (event, id, text)."""
    return {"memory": [{"id": alias, "text": text, "event": event} for event, alias, text in items]}


def stored(values: Mapping[str, str]) -> dict[str, str]:
    """Read the stored memories that a decision was shown: text by id."""
    return {entry["id"]: entry["text"] for entry in json.loads(values["stored"])}


def replying(**replies: Any) -> FakeModel:
    """Make a model: for each role a reply, or a function of values and key."""
    usual: dict[str, Any] = {
        "extract": spoken_facts,
        "route": add_all,
        "decide": {"event": "ADD", "id": "", "text": ""},
        "summary": lambda values, key: f"summary of {len(values['messages'].splitlines())} lines",
        "entities": {"entities": []},
        "relations": {"entities": []},
        "delete": {"relations": []},
    }

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        reply = {**usual, **replies}[role]
        return reply(values, key) if callable(reply) else reply  # type: ignore[no-any-return]

    return FakeModel(function)


def counts(memory: Mem0Memory) -> Mapping[str, int]:
    """Counts of all scopes."""
    found: Mapping[str, int] = memory.statistics()["counts"]
    return found


def memories(memory: Mem0Memory, scope: int = 0) -> list[dict[str, Any]]:
    """The memories of one scope, as a snapshot holds them."""
    found: list[dict[str, Any]] = memory.state()["scopes"][scope]["memories"]
    return found


def texts(memory: Mem0Memory, scope: int = 0) -> list[str]:
    """Their texts."""
    return [entry["text"] for entry in memories(memory, scope)]
