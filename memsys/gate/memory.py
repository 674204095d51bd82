"""Any memory system behind the gate, through the memory protocol alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memsys.gate.config import GatedConfig, gate_format
from memsys.gate.decisions import Decisions, GateDecision
from memsys.llm.usage import MeteredModel, Usage, metered
from memsys.notes.note import unit_content
from memsys.protocol import Parts, Prepared, State, close_memory, resume_memory
from memsys.protocol_checks import build_memory
from memsys.units import conversation_of
from memsys.vocabulary import Conversation, Json, Retrieval, Unit

#: The share of writes that the paper's threshold lets pass on its calibration corpus.
_QUANTILE = 0.80


@dataclass(frozen=True, slots=True)
class PreparedUnit:
    """The gate's decision, what the host prepared (``None`` for a dropped unit), and what that cost."""

    decision: GateDecision
    prepared: Prepared
    usage: Usage


class GatedMemory:
    """A host that sees only the units which the gate lets pass; it keeps its own units, reading and consolidation.

    The decision is made in :meth:`prepare`, before the host's own: a dropped unit costs no call of the backbone, and
    how far ``prepare`` runs ahead changes neither decisions nor calls (see :class:`memsys.gate.decisions.Decisions`).
    """

    def __init__(self, config: GatedConfig, parts: Parts) -> None:
        self._config = config
        self._turn_format = gate_format(parts.turn_format, config.text)
        self._host = build_memory(config.host, replace(parts, llm=MeteredModel(parts.llm)))
        self._decisions = Decisions(parts.embedder, config.rule)
        self._positions: dict[str, int] = {}
        self._written: list[GateDecision] = []
        self._usage = Usage()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return the host's units, which are what the gate decides on."""
        return [replace(unit, conversation=conversation) for unit in self._host.units(conversation)]

    async def prepare(self, unit: Unit) -> PreparedUnit:
        """Decide; let the host prepare what passes.

        Raises:
            ValueError: the unit is none of those that :meth:`units` returned.
        """
        decision = await self._decisions.of(self._position(unit))
        with metered() as usage:
            prepared = None if decision.dropped else await self._host.prepare(unit)
        return PreparedUnit(decision, prepared, usage)

    def _position(self, unit: Unit) -> int:
        """Find a unit's place in its conversation, whose texts are what decisions are made on."""
        conversation = conversation_of(unit)
        if not self._positions:
            units = self._host.units(conversation)
            self._positions = {each.unit_id: position for position, each in enumerate(units)}
            self._decisions.follow([unit_content(each, self._turn_format) for each in units])
        return self._positions[unit.unit_id]

    async def write(self, unit: Unit, prepared: PreparedUnit) -> None:
        """Let the host write what passed."""
        with metered() as usage:
            if not prepared.decision.dropped:
                await self._host.write(unit, prepared.prepared)
        self._written.append(prepared.decision)
        self._usage.add(prepared.usage)
        self._usage.add(usage)

    async def consolidate(self) -> None:
        """Let the host finish."""
        with metered() as usage:
            await self._host.consolidate()
        self._usage.add(usage)

    async def retrieve(self, query: str) -> Retrieval:
        """Ask the host."""
        return await self._host.retrieve(query)

    async def resume(self) -> None:
        """Resume the host, whose calls for it are not counted: they were when it wrote."""
        await resume_memory(self._host)

    async def close(self) -> None:
        """Close the host."""
        await close_memory(self._host)

    def statistics(self) -> Mapping[str, Json]:
        """Return the host's statistics, and under ``gate`` what the gate decided and what passing units cost.

        ``calls_saved`` is an estimate: dropped units times the host's mean calls for a unit that passed. ``trace``
        has one entry per unit, ``None`` where nothing was scored.
        """
        decisions = self._written
        scores = [decision.score for decision in decisions if decision.score is not None]
        dropped = sum(decision.dropped for decision in decisions)
        passed = len(decisions) - dropped
        gate = {
            "tau_noop": self._config.tau_noop,
            "units": len(decisions),
            "scored": len(scores),
            "passed": passed,
            "dropped": dropped,
            "skip_rate": dropped / len(decisions) if decisions else 0.0,
            "skip_rate_of_scored": dropped / len(scores) if scores else 0.0,
            "score_p80": float(np.quantile(scores, _QUANTILE)) if scores else None,
            "calls": self._usage.calls,
            "calls_saved": dropped * self._usage.calls / passed if passed else 0.0,
            "add_phase": self._usage.state(),
            "trace": {
                name: [_rounded(getattr(decision, name)) for decision in decisions]
                for name in ("score", "cosine", "kappa")
            },
        }
        return {**self._host.statistics(), "gate": gate}

    def state(self) -> State:
        """Return the host's snapshot and the gate's, as of the last write."""
        return {
            "host": self._host.state(),
            "decisions": self._decisions.state(len(self._written)),
            "usage": self._usage.state(),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._host.load_state(state["host"])
        self._decisions.load_state(state["decisions"])
        self._written = self._decisions.made()
        self._usage = Usage.from_state(state["usage"])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
