"""SAGE as a memory system: the write path and what it keeps."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memsys.embedding.contract import Vectors
from memsys.facts.batches import batch_date, owners_of_unit, session_batches
from memsys.facts.extraction import ExtractCall, Facts, extract, unfenced
from memsys.facts.formatting import ScopedHit, best_first, format_context
from memsys.gate.vmf import VmfScope
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.sage.config import SageConfig
from memsys.sage.counts import write_statistics
from memsys.sage.roles import make_roles
from memsys.sage.scope import FactDecision, SageScope
from memsys.vocabulary import Completion, Conversation, Json, Retrieval, Unit


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """The facts of a batch for one scope, their embeddings (facts, d), and the call that listed them."""

    facts: Facts
    vectors: Vectors
    completion: Completion


class SageMemory(BaseMemory):
    """Facts that a novelty gate adds, merges into their nearest one, or ignores.

    A batch of messages is extracted once for every scope, in :meth:`prepare` (one call each). A write moves each
    scope's threshold by one step and routes the facts in order without a call; those inside the band are merged (one
    call each). Scopes share nothing, so a write works on all of them at once.
    """

    def __init__(self, config: SageConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._roles = make_roles(config.roles, config.merge_prompt, config.extract_prompt)
        self._scopes: dict[str, SageScope] = {}

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut each session into batches."""
        return session_batches(conversation, self._config.batch_size)

    async def prepare(self, unit: Unit) -> Mapping[str, ExtractedFacts]:
        """Extract the batch's facts for every scope, and embed them.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        owners = owners_of_unit(self._config.scopes, unit)
        replies = await asyncio.gather(*(self._extract(unit, owner) for owner in owners))
        vectors = await self._parts.embedder.embed([text for facts, _ in replies for text in facts.texts])
        ends = [sum(len(facts.texts) for facts, _ in replies[: n + 1]) for n in range(len(replies))]
        return {
            owner: ExtractedFacts(facts, vectors[end - len(facts.texts) : end], completion)
            for owner, (facts, completion), end in zip(owners, replies, ends, strict=True)
        }

    async def write(self, unit: Unit, prepared: Mapping[str, ExtractedFacts]) -> None:
        """Add, merge or ignore the facts of a batch, in every scope."""
        self._open(list(prepared))
        parts = [(self._scopes[owner], extracted) for owner, extracted in prepared.items()]
        await asyncio.gather(*(self._write(scope, unit, extracted) for scope, extracted in parts))

    async def retrieve(self, query: str) -> Retrieval:
        """Find each scope's nearest memories."""
        spans: dict[str, float] = {}
        with timed(spans, "embed"):
            vector = (await self._parts.embedder.embed([query]))[0]
        with timed(spans, "search"):
            found = best_first(
                [
                    ScopedHit(owner, scope.memories[memory_id], score)
                    for owner, scope in self._scopes.items()
                    for memory_id, score in scope.vectors.index.search(vector, self._config.top_k)
                ]
            )
        with timed(spans, "format"):
            context, left_out = await format_context(
                self._parts.llm, found, list(self._scopes), self._config.context_max_tokens
            )
        stored = {scope.owner: len(scope.memories) for scope in self._scopes.values()}
        trace = {"stored_memories": sum(stored.values()), "left_out": left_out, "fallbacks": [], "spans": spans}
        hits = tuple(each.memory.hit(each.score) for each in found)
        return Retrieval(hits, context, trace, shown=tuple(range(len(found) - left_out)))

    async def _extract(self, unit: Unit, owner: str) -> tuple[Facts, Completion]:
        config, parts = self._config, self._parts
        date = batch_date(unit) if config.prompt_date == "session" else config.prompt_date
        whose = owner if config.scopes == "speakers" else None
        call = ExtractCall(whose, date, config.max_facts, key=f"{unit.unit_id}:{owner}")
        return await extract(parts.llm, self._roles.extract, unit, parts.turn_format, call)

    async def _write(self, scope: SageScope, unit: Unit, extracted: ExtractedFacts) -> None:
        facts = extracted.facts
        scope.usage.note("extract", extracted.completion)
        scope.counts["writes"] += 1
        scope.counts["facts"] += len(facts.texts)
        scope.counts["extract.empty"] += not facts.texts
        scope.counts["extract.over_limit"] += facts.over_limit
        if facts.fallback:
            scope.counts["fallback.extract"] += 1
            scope.counts[f"extract.{facts.fallback}"] += 1
        tau = scope.step(len(facts.texts))
        for number, (text, vector) in enumerate(zip(facts.texts, extracted.vectors, strict=True)):
            verdict = scope.judge(text, vector, tau)
            if verdict.action == "add":
                scope.add(text, vector, unit)
            elif verdict.action == "update":
                await self._merge(scope, unit, verdict, text, key=f"{unit.unit_id}:{scope.owner}:{number}")

    async def _merge(self, scope: SageScope, unit: Unit, verdict: FactDecision, text: str, *, key: str) -> None:
        """Merge a fact into its nearest memory; an empty reply keeps the stored text."""
        if verdict.nearest is None:
            raise ValueError("only a scope with memories routes to an update")
        stored = scope.memories[verdict.nearest].text
        reply = await self._parts.llm.ask(self._roles.merge, {"stored": stored, "new": text}, key=key)
        scope.usage.note("merge", reply.completion)
        merged = unfenced(reply.text)
        scope.counts["fallback.merge"] += not merged
        scope.counts["merge.cut"] += reply.completion.finish_reason == "length"
        vectors = await self._parts.embedder.embed([merged or stored])
        scope.merge(verdict.nearest, merged or stored, vectors[0], unit)

    def _open(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._scopes:
                vectors = VmfScope(self._parts.embedder.dimension, self._config.kappa)
                self._scopes[name] = SageScope(name, self._config, vectors)

    def statistics(self) -> Mapping[str, Json]:
        """Count memories, routes, fallbacks and calls, in all and by scope; trace the threshold."""
        return write_statistics(list(self._scopes.values()))

    def state(self) -> State:
        """Return all scopes."""
        return {"scopes": [scope.state() for scope in self._scopes.values()]}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._scopes = {}
        self._open([entry["owner"] for entry in state["scopes"]])
        for entry in state["scopes"]:
            self._scopes[entry["owner"]].load_state(entry)
