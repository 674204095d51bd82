"""Calibration of ``tau_noop`` without the benchmark (SAGE, appendix G).

The backbone writes diaries, each of one person and on one subject, whose entries repeat themselves about as much as a
conversation does. Every diary runs through an empty scope in which everything is stored; the threshold is the score
that a share of the entries stays below. The paper gives neither size nor subjects of its corpus; ours are in
``prompts/personas.txt``.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import numpy as np

from memsys.embedding.contract import Embedder
from memsys.gate.decisions import GateRule, decide
from memsys.gate.vmf import VmfScope
from memsys.llm.contract import LanguageModel, Role
from memsys.llm.roles import make_role
from memsys.notes.roles import object_schema

PROMPTS = Path(__file__).parent / "prompts"

_ENTRIES = object_schema(entries={"type": "array", "items": {"type": "string"}})


@dataclass(frozen=True, slots=True)
class Persona:
    """Whose diary is written: a name and what the diary is about."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Diary:
    """A person's entries, and how many calls gave none."""

    persona: Persona
    entries: tuple[str, ...]
    malformed: int


def personas() -> list[Persona]:
    """Return the shipped persons."""
    lines = (PROMPTS / "personas.txt").read_text(encoding="utf-8").splitlines()
    return [Persona(*line.split(": ", 1)) for line in lines]


def diary_role(temperature: float, max_tokens: int) -> Role:
    """Make the role ``diary``; the temperature governs how much the entries repeat themselves."""
    return make_role("diary", {"temperature": temperature, "max_tokens": max_tokens}, PROMPTS, _ENTRIES)


async def write_diary(llm: LanguageModel, role: Role, persona: Persona, entries: int, per_call: int) -> Diary:
    """Write a diary, ``per_call`` entries at a time; malformed replies leave it shorter."""
    about = f"{persona.name}, {persona.description}"

    async def ask(first: int) -> list[str] | None:
        values = {"count": str(per_call), "persona": about, "first": str(first + 1)}
        reply = await llm.ask(role, values, key=f"{persona.name}:{first}")
        return None if reply.value is None else [text.strip() for text in reply.value["entries"] if text.strip()]

    replies = await asyncio.gather(*(ask(first) for first in range(0, entries, per_call)))
    written = [entry for reply in replies for entry in reply or []]
    return Diary(persona, tuple(written[:entries]), sum(reply is None for reply in replies))


async def stream_scores(embedder: Embedder, texts: Sequence[str], rule: GateRule) -> list[float]:
    """Run texts through an empty scope that stores them all; return the scores of those that were scored."""
    scope, everything = VmfScope(embedder.dimension, rule.kappa), replace(rule, tau_noop=inf)
    scores = []
    for position, vector in enumerate(await embedder.embed(texts)):
        score = decide(scope, vector, everything).score
        scope.add(str(position), vector)
        if score is not None:
            scores.append(score)
    return scores


def threshold(scores: Sequence[float], quantile: float) -> float:
    """Return the score below which a share ``quantile`` of the scores lies.

    Raises:
        ValueError: there are no scores.
    """
    if not scores:
        raise ValueError("no text was scored: the diaries are shorter than min_scope")
    return float(np.quantile(np.asarray(scores), quantile))
