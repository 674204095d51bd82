"""xMemory in tests: presets from their YAML, a backbone that replies sensibly, facts at chosen places in space."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.llm.contract import Reply, Role
from memsys.protocol import Parts
from memsys.vocabulary import Completion, Conversation, TokenLogprob, Turn
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.memory import XMemory
from memsys.xmemory.rules import ThemeRules
from memsys.xmemory.themes import Themes
from tests.support.composing import composed, memory_config
from tests.support.fakes import FakeModel, ReplyFunction, WordEmbedder

#: Prompt values of a probe -> ``-log p`` of each token of its reply.
Surprises = Callable[[Mapping[str, str]], Sequence[float]]


class ProbedModel(FakeModel):
    """A backbone that also says how likely its words were."""

    def __init__(self, function: ReplyFunction, surprises: Surprises | None = None) -> None:
        super().__init__(function)
        self.surprises = surprises or (lambda values: [1.0])

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Answer; a probe with one word per surprise."""
        if role.name != "probe":
            return await super().ask(role, values, key=key)
        self.calls.append((role.name, key))
        self.prompts.append(role.prompt.render(values))
        tokens = tuple(TokenLogprob(f" w{n}", -value) for n, value in enumerate(self.surprises(values)))
        text = "".join(token.token for token in tokens)
        return Reply(None, text, Completion(text, 1, len(tokens), 0.0, "length", tokens))


def sensible(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
    """Reply as a dutiful backbone: a new episode where the first word changes, one fact per message."""
    if role == "boundary":
        last = values["history"].splitlines()[-1]
        return {"should_end": _topic(last) != _topic(values["message"]), "reason": "another subject"}
    if role == "episode":
        lines = [line.partition("] ")[2] or line for line in values["messages"].splitlines()]
        return {
            "title": f"About {_topic(lines[0])}",
            "content": " and ".join(lines),
            "timestamp": "2023-05-01T10:00:00",
        }
    if role == "extract":
        return {"statements": values["content"].split(" and ")}
    if role == "calibrate":
        return {"statements": [line.partition("] ")[2] for line in values["messages"].splitlines()]}
    if role == "predict":
        return "They talk about it."
    return values["facts"].splitlines()[0].removeprefix("- ")


def _topic(line: str) -> str:
    return line.rpartition(": ")[2].split()[0]


def replying(**sayings: Any) -> ProbedModel:
    """Make a backbone that is sensible but for some roles; a saying may be a function of (values, key)."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        if role not in sayings:
            return sensible(role, values, key)
        saying = sayings[role]
        return saying(values, key) if callable(saying) else saying

    return ProbedModel(function)


def preset(name: str = "xmemory", **changes: Any) -> XMemoryConfig:
    """Make the config of a preset; a change of a group (a mapping) is merged into it."""
    settings = composed(name)
    merged = {
        key: {**settings[key], **value} if isinstance(value, Mapping) and key != "roles" else value
        for key, value in changes.items()
    }
    config = memory_config(name, **merged)
    assert isinstance(config, XMemoryConfig)
    return config


def memory(config: XMemoryConfig, model: FakeModel | None = None, embedder: Any = None) -> XMemory:
    """Make an empty memory."""
    return XMemory(config, Parts("c", model or replying(), embedder or WordEmbedder(), seed=1))


def talk(*texts: str, per_session: int = 1000) -> Conversation:
    """Make a conversation; session n is at one o'clock on the n-th of May."""
    turns = []
    for number, text in enumerate(texts):
        session = number // per_session + 1
        place = number % per_session + 1
        turns.append(
            Turn(f"D{session}:{place}", f"session_{session}", ("Ann", "Ben")[number % 2], text,
                 date_time=f"1:00 pm on {session} May, 2023")
        )  # fmt: skip
    return Conversation("c", tuple(turns), ("Ann", "Ben"))


def ingest(system: XMemory, conversation: Conversation) -> XMemory:
    """Write a conversation and consolidate."""

    async def run() -> None:
        for unit in system.units(conversation):
            await system.write(unit, await system.prepare(unit))
        await system.consolidate()

    asyncio.run(run())
    return system


def unit_rows(*rows: Sequence[float]) -> Vectors:
    """Make rows of norm 1."""
    wide = np.array(rows, dtype=np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), dtype=np.float32)


def theme_rules(name: str = "xmemory", **changes: Any) -> ThemeRules:
    """Make the theme rules of a preset, some changed."""
    return replace(preset(name).theme_rules, **changes)


def themes_of(rules: ThemeRules, vectors: Vectors) -> Themes:
    """Attach facts ``s0, s1, ...`` with these vectors ``(n, d)``, in order."""
    index = VectorIndex(vectors.shape[1])
    themes = Themes(rules, index, vectors.shape[1])
    for number, vector in enumerate(vectors):
        index.add([f"s{number}"], vector[None])
        themes.attach(f"s{number}")
    return themes
