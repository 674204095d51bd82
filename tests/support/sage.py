"""SAGE in tests: presets, a backbone with given facts, and batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from memsys.embedding.contract import Embedder
from memsys.protocol import Parts
from memsys.sage.memory import SageMemory
from memsys.vocabulary import Conversation, Turn
from tests.support.composing import memory_config
from tests.support.fakes import FakeModel, WordEmbedder


def replying(facts: Any = None, merged: Any = None) -> FakeModel:
    """Make a model: ``facts`` of a batch (a list, raw text, or a function of values and key), ``merged`` text."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        if role == "extract":
            given = facts(values, key) if callable(facts) else facts
            return given if isinstance(given, str | dict) else {"facts": list(given or [])}
        text = merged(values, key) if callable(merged) else merged
        return f"{values['stored']} {values['new']}" if text is None else text

    return FakeModel(function)


def spoken_facts(values: Mapping[str, str], key: str) -> list[str]:
    """Each of the user's messages is a fact."""
    lines = [line for line in values["messages"].splitlines() if line.startswith("user: ")]
    return [line.removeprefix("user: ").partition(": ")[2] for line in lines]


def sage(model: FakeModel, preset: str = "sage", embedder: Embedder | None = None, **changes: Any) -> SageMemory:
    """Make an empty memory of a preset."""
    config = memory_config(preset, **changes)
    memory = config.build(Parts("c", model, embedder or WordEmbedder(), seed=1))
    assert isinstance(memory, SageMemory)
    return memory


def monologue(*texts: str, sessions: Sequence[int] | None = None) -> Conversation:
    """Make a conversation that one person holds alone; ``sessions`` numbers the session of each text."""
    numbers = sessions or [1] * len(texts)
    turns = [
        Turn(f"D{number}:{n}", f"s{number}", "Ann", text, date_time=f"{number} May 2023")
        for n, (text, number) in enumerate(zip(texts, numbers, strict=True))
    ]
    return Conversation("c", tuple(turns), ("Ann",))
