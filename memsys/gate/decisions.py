"""Gate decisions about the units of a stream: made in order, ahead of the writes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from memsys.embedding.contract import Embedder, Vectors
from memsys.gate.vmf import KappaRule, VmfScope

#: Units embedded together; a wider batch costs nothing when the stream is long, and cannot change a decision.
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class GateRule:
    """When a unit is dropped.

    Attributes:
        tau_noop: a unit is dropped if its score is above this.
        min_scope: units that must have passed before any is scored.
        kappa: how the concentration is estimated.
    """

    tau_noop: float
    min_scope: int
    kappa: KappaRule


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Gate decision on a unit: score, greatest cosine and kappa, ``None`` where nothing was scored."""

    dropped: bool
    score: float | None = None
    cosine: float | None = None
    kappa: float | None = None


class Decisions:
    """The decision on each unit of a stream, made when it is first needed.

    A decision depends on the texts of the units before it and on nothing that a host makes of them: the scope holds
    the units that passed. So decisions run ahead of the writes, and a unit that is dropped never reaches its host. The
    paper's runs on A-Mem seem to score against the notes that the backbone wrote (their skip rates differ by backbone);
    that needs each host's own vectors, and would hold every unit back until all writes before it are done.

    Args:
        embedder: embeds the units' texts.
        rule: when a unit is dropped.
    """

    def __init__(self, embedder: Embedder, rule: GateRule) -> None:
        self._embedder = embedder
        self._rule = rule
        self._scope = VmfScope(embedder.dimension, rule.kappa)
        self._texts: Sequence[str] = ()
        self._made: list[GateDecision] = []
        self._lock = asyncio.Lock()

    def follow(self, texts: Sequence[str]) -> None:
        """Take the texts of the whole stream, in order."""
        self._texts = texts

    async def of(self, position: int) -> GateDecision:
        """Return the decision on the unit at a position of the stream.

        Raises:
            IndexError: the stream is not that long.
        """
        if position >= len(self._texts):
            raise IndexError(f"unit {position} of a stream of {len(self._texts)}: follow() was given too few texts")
        async with self._lock:
            while len(self._made) <= position:
                block = self._texts[len(self._made) : len(self._made) + _BLOCK]
                for vector in await self._embedder.embed(block):
                    decision = decide(self._scope, vector, self._rule)
                    if not decision.dropped:
                        self._scope.add(str(len(self._made)), vector)
                    self._made.append(decision)
        return self._made[position]

    def made(self) -> list[GateDecision]:
        """Return all decisions so far."""
        return list(self._made)

    def state(self, count: int) -> dict[str, Any]:
        """Return the snapshot after the first ``count`` decisions, without those made ahead."""
        made = self._made[:count]
        passed = [str(position) for position, decision in enumerate(made) if not decision.dropped]
        columns = {field.name: [getattr(decision, field.name) for decision in made] for field in fields(GateDecision)}
        return {"columns": columns, "passed": self._scope.rows(passed)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot; what was decided beyond it is forgotten."""
        columns = state["columns"]
        names = [field.name for field in fields(GateDecision)]
        rows = zip(*(columns[name] for name in names), strict=True)
        self._made = [GateDecision(**dict(zip(names, row, strict=True))) for row in rows]
        self._scope = VmfScope(self._embedder.dimension, self._rule.kappa)
        passed = [position for position, decision in enumerate(self._made) if not decision.dropped]
        for position, vector in zip(passed, state["passed"], strict=True):
            self._scope.add(str(position), vector)


def decide(scope: VmfScope, vector: Vectors, rule: GateRule) -> GateDecision:
    """Decide on one unit vector (d,) given the scope (SAGE, section 3.5): dropped if ``score > tau_noop``."""
    if len(scope) < max(1, rule.min_scope):
        return GateDecision(dropped=False)
    support = scope.support(vector)
    return GateDecision(support.score > rule.tau_noop, support.score, support.cosine, scope.kappa)
