"""Mem0 and Mem0g as a memory system: the write path and the read path."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from baselines.mem0.config import Mem0Config
from baselines.mem0.counts import write_statistics
from baselines.mem0.deciding import Decider, NewFacts
from baselines.mem0.dialogue import Dialogue
from baselines.mem0.graph import EntityGraph
from baselines.mem0.graph_calls import ExtractedTriples, GraphCalls, write_graph
from baselines.mem0.reading import Relation, shown_with_relations
from baselines.mem0.scope import Mem0Scope
from memsys.embedding.contract import Vectors
from memsys.facts.batches import batch_date, owners_of_unit, session_batches
from memsys.facts.extraction import ExtractCall, Facts, extract
from memsys.facts.formatting import ScopedHit, best_first
from memsys.index.vector import VectorIndex
from memsys.llm.usage import Usage
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.vocabulary import Completion, Conversation, Json, Retrieval, Unit


@dataclass(frozen=True, slots=True)
class FactBatch:
    """The facts of a batch for one scope, their embeddings (facts, d), and the call that listed them."""

    facts: Facts
    vectors: Vectors
    completion: Completion


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Parts of a batch that can be prepared before the store is read, by owner; empty where none can."""

    owners: Sequence[str]
    extracted: Mapping[str, FactBatch] = field(default_factory=dict)
    stated: Mapping[str, ExtractedTriples] = field(default_factory=dict)


class Mem0Memory(BaseMemory):
    """Facts on whose storing the backbone decides.

    For every scope a batch of messages is extracted (one call) and, with a graph, its entities and relations listed
    (two calls): in :meth:`prepare`, as all of it depends on the batch alone. A write then decides on the facts against
    the memories most like them, and on the graph's relations around the batch's entities (one call). Scopes share
    nothing, so a write works on all of them at once. With the paper's summary an extraction depends on what came
    before, and is a part of the write.
    """

    def __init__(self, config: Mem0Config, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._roles = config.make_roles()
        self._rules = config.graph_rules
        self._decider = Decider(config, parts.llm, parts.embedder, self._roles)
        self._dialogue = Dialogue(config.history_messages)
        self._summaries, self._summary_counts = Usage(), {"summary.cut": 0, "summary.kept_old": 0}
        self._scopes: dict[str, Mem0Scope] = {}

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut each session into batches."""
        return session_batches(conversation, self._config.batch_size)

    async def prepare(self, unit: Unit) -> PreparedBatch:
        """Extract the batch's facts for every scope, and list what the graph needs.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        owners = owners_of_unit(self._config.scopes, unit)
        extracting = owners if self._config.extract_context == "batch" else []
        stating = owners if self._rules.kept else []
        extracted, stated = await asyncio.gather(
            asyncio.gather(*(self._extract(unit, owner, {}) for owner in extracting)),
            asyncio.gather(*(self._graph_calls(owner).stated(unit, self._parts.turn_format) for owner in stating)),
        )
        return PreparedBatch(
            owners, dict(zip(extracting, extracted, strict=True)), dict(zip(stating, stated, strict=True))
        )

    async def write(self, unit: Unit, prepared: PreparedBatch) -> None:
        """Let the batch's facts and relations change every scope."""
        self._open(prepared.owners)
        background = await self._background(unit)
        await asyncio.gather(
            *(self._write_facts(scope, unit, prepared, background) for scope in self._scopes.values()),
            *(self._write_graph(self._scopes[owner], unit, stated) for owner, stated in prepared.stated.items()),
        )
        if self._config.extract_context == "history":
            self._dialogue.follow(unit, self._parts.turn_format)

    async def retrieve(self, query: str) -> Retrieval:
        """Find each scope's nearest memories and, where the graph is read, its relations (one call per scope)."""
        spans: dict[str, float] = {}
        with timed(spans, "embed"):
            vector = (await self._parts.embedder.embed([query]))[0]
        with timed(spans, "search"):
            found = self._nearest(vector)
        with timed(spans, "graph"):
            relations, fallbacks = await self._relations(query)
        with timed(spans, "format"):
            shown = await shown_with_relations(
                self._parts.llm, found, relations, list(self._scopes), self._config.context_max_tokens
            )
        trace = {
            "stored_memories": sum(len(scope.memories) for scope in self._scopes.values()),
            "relations": len(relations),
            "left_out": shown.left_out,
            "fallbacks": fallbacks,
            "spans": spans,
        }
        hits = (*(each.memory.hit(each.score) for each in found), *(each.hit for each in relations))
        places = (*range(shown.memories), *(len(found) + place for place in range(shown.relations)))
        return Retrieval(hits, shown.text, trace, shown=places)

    async def _extract(self, unit: Unit, owner: str, background: Mapping[str, str]) -> FactBatch:
        config, parts = self._config, self._parts
        date = batch_date(unit) if config.prompt_date == "session" else config.prompt_date
        whose = owner if config.scopes == "speakers" else None
        call = ExtractCall(whose, date, config.max_facts, f"{unit.unit_id}:{owner}", background)
        facts, completion = await extract(parts.llm, self._roles["extract"], unit, parts.turn_format, call)
        return FactBatch(facts, await parts.embedder.embed(facts.texts), completion)

    async def _background(self, unit: Unit) -> Mapping[str, str]:
        """Return what the paper's extraction is shown besides the batch; summarise the session that has just ended."""
        if self._config.extract_context == "batch":
            return {}
        if self._dialogue.ends_before(unit):
            completion, kept_old = await self._dialogue.refresh(
                self._parts.llm, self._roles["summary"], f"summary before {unit.unit_id}"
            )
            self._summaries.note("summary", completion)
            self._summary_counts["summary.cut"] += completion.finish_reason == "length"
            self._summary_counts["summary.kept_old"] += kept_old
        return self._dialogue.values()

    async def _write_facts(
        self, scope: Mem0Scope, unit: Unit, prepared: PreparedBatch, background: Mapping[str, str]
    ) -> None:
        extracted = prepared.extracted.get(scope.owner) or await self._extract(unit, scope.owner, background)
        scope.note_extraction(extracted.facts, extracted.completion)
        await self._decider.write(scope, unit, NewFacts(extracted.facts.texts, extracted.vectors))

    async def _write_graph(self, scope: Mem0Scope, unit: Unit, stated: ExtractedTriples) -> None:
        written = await write_graph(scope.graph, self._graph_calls(scope.owner), stated, unit)
        for role, reply in (*stated.replies.items(), ("delete", written.reply)):
            scope.note(role, reply.completion, malformed=reply.malformed)
        scope.counts["relations.stated"] += len(stated.triples)
        scope.counts["relations.removed"] += written.removed
        scope.counts["relations.remove_unknown"] += written.unknown

    def _nearest(self, vector: Vectors) -> list[ScopedHit]:
        return best_first(
            [
                ScopedHit(owner, scope.memories[memory_id], score)
                for owner, scope in self._scopes.items()
                for memory_id, score in scope.index.search(vector, self._config.top_k)
            ]
        )

    async def _relations(self, query: str) -> tuple[list[Relation], list[str]]:
        if self._rules.use != "read":
            return [], []
        scopes = list(self._scopes.values())
        found = await asyncio.gather(
            *(self._graph_calls(scope.owner).found(scope.graph, query, self._rules) for scope in scopes)
        )
        relations = [
            Relation(scope.owner, edge.line, edge.hit(scope.owner, score))
            for scope, (edges, _) in zip(scopes, found, strict=True)
            for edge, score in edges
        ]
        return relations, ["entities:none" for _, malformed in found if malformed]

    def _graph_calls(self, owner: str) -> GraphCalls:
        return GraphCalls(self._parts.llm, self._parts.embedder, self._roles, owner)

    def _open(self, names: Sequence[str]) -> None:
        dimension = self._parts.embedder.dimension
        for name in names:
            if name not in self._scopes:
                self._scopes[name] = Mem0Scope(name, VectorIndex(dimension), EntityGraph(dimension, self._rules))

    def statistics(self) -> Mapping[str, Json]:
        """Count memories, events, fallbacks, calls and the graph, in all and by scope."""
        counts = write_statistics(list(self._scopes.values()), self._summaries)
        return {**counts, **(self._summary_counts if self._config.extract_context == "history" else {})}

    def state(self) -> State:
        """Return all scopes and the conversation so far."""
        return {
            "scopes": [scope.state() for scope in self._scopes.values()],
            "dialogue": self._dialogue.state(),
            "summaries": self._summaries.state(),
            "summary_counts": dict(self._summary_counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._scopes = {}
        self._open([entry["owner"] for entry in state["scopes"]])
        for entry in state["scopes"]:
            self._scopes[entry["owner"]].load_state(entry)
        self._dialogue.load_state(state["dialogue"])
        self._summaries = Usage.from_state(state["summaries"])
        self._summary_counts = {name: int(count) for name, count in state["summary_counts"].items()}
