"""LightMem as a memory system."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from baselines.lightmem import attention
from baselines.lightmem.config import LightMemConfig
from baselines.lightmem.context import write_facts
from baselines.lightmem.entries import DatedFact, moments
from baselines.lightmem.extraction import Extraction, extract_facts
from baselines.lightmem.revision import queues, revise
from baselines.lightmem.roles import make_roles
from baselines.lightmem.sensory import BufferedTurn, Segment, SensoryBuffer
from baselines.lightmem.short_term import Batch, ShortTermBuffer
from baselines.limits import room_for_context
from baselines.pruned import compressor
from memsys.counting import counter_from, counter_state, counts_with
from memsys.index.vector import VectorIndex
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.turns import TEXTS as TURN_TEXTS
from memsys.units import session_units
from memsys.vocabulary import Conversation, Json, Retrieval, Turn, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "segments",
    "segments.over_limit",
    "batches",
    "fallback.extract",
    "facts.unreadable",
    "facts.source_out_of_range",
    "update.update",
    "update.delete",
    "update.ignore",
    "fallback.update",
    "characters.said",
    "characters.kept",
)


class LightMemMemory(BaseMemory):
    """Turns, compressed and cut into topics; the facts of topics, which later facts revise at the end.

    A unit is a session; buffers reach over its end. Turns are compressed and embedded in :meth:`prepare`; which topics
    are complete, and so what is extracted, is decided in :meth:`write`.
    """

    def __init__(self, config: LightMemConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles)
        settings = config.compressor_settings
        self._compressor = compressor.load(settings) if config.compress_rules.mode == "llmlingua2" else None
        rules = config.segment_rules
        self._encoder = attention.load(settings, rules.layers) if rules.needs_encoder else None
        self._sensory = SensoryBuffer(config.segment_rules, self._encoder)
        self._short_term = ShortTermBuffer(config.stm_tokens)
        self._index = VectorIndex(parts.embedder.dimension)
        self._facts: dict[str, DatedFact] = {}
        self._places: Mapping[str, NDArray[np.int64]] | None = None
        self._made = 0
        self._counts: Counter[str] = Counter()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> list[BufferedTurn]:
        """Compress the turns, count their tokens and embed them."""
        texts = await asyncio.gather(*(self._compressed(turn) for turn in unit.turns))
        tokens = await asyncio.gather(*(self._parts.llm.count_tokens(text) for text in texts))
        vectors = await self._parts.embedder.embed(texts)
        return [
            BufferedTurn(turn.turn_id, turn.speaker, turn.date_time, text, self._length(text, cost), cost, vector)
            for turn, text, cost, vector in zip(unit.turns, texts, tokens, vectors, strict=True)
        ]

    async def write(self, unit: Unit, prepared: Sequence[BufferedTurn]) -> None:
        """Push the turns through both buffers and store the facts of the batches that are complete.

        Raises:
            ConfigError: the backbone's window leaves no room; better now than when everything is written.
        """
        rules = self._config.context_rules
        room_for_context(self._parts.llm, rules.max_tokens, rules.reserve_tokens)
        self._counts["characters.said"] += sum(len(self._said(turn)) for turn in unit.turns)
        self._counts["characters.kept"] += sum(len(turn.text) for turn in prepared)
        # A write of the released code is one turn; without segments the turns of a session stay together here.
        pushes = [[turn] for turn in prepared] if self._config.segment_rules.enabled else [prepared]
        await self._extract([self._batches(await self._sensory.push(push)) for push in pushes])

    async def consolidate(self) -> None:
        """Empty both buffers, then let later facts revise earlier ones."""
        await self._extract([[*self._batches(await self._sensory.flush()), *self._short_term.flush()]])
        rules = self._config.update_rules
        if rules.mode == "off":
            return
        found = queues(self._index, rules, self._moments())
        revision = await revise(self._parts.llm, self._roles["update"], self._facts, found)
        self._counts.update(revision.counts)
        self._facts.update({fact.fact_id: fact for fact in revision.rewritten})
        if rules.reembed and revision.rewritten:
            vectors = await self._parts.embedder.embed([fact.text for fact in revision.rewritten])
            self._index.replace([fact.fact_id for fact in revision.rewritten], vectors)
        self._index.remove(revision.deleted)
        self._places = None
        for fact_id in revision.deleted:
            del self._facts[fact_id]

    async def retrieve(self, query: str) -> Retrieval:
        """Find the facts nearest to the question."""
        spans: dict[str, float] = {}
        with timed(spans, "embed"):
            vectors = await self._parts.embedder.embed([query])
        with timed(spans, "search"):
            found = self._search(vectors[0])
        with timed(spans, "format"):
            facts = [self._facts[fact_id] for fact_id, _ in found]
            text, left_out = await write_facts(self._parts.llm, self._config.context_rules, self._config.texts, facts)
        hits = tuple(fact.hit(score) for fact, (_, score) in zip(facts, found, strict=True))
        trace = {"stored": len(self._facts), "left_out": left_out, "fallbacks": [], "spans": spans}
        return Retrieval(hits, text, trace, shown=tuple(range(len(facts) - left_out)))

    def _search(self, vector: NDArray[np.float32]) -> list[tuple[str, float]]:
        rules = self._config.search_rules
        if rules.scope == "combined":
            return self._index.search(vector, rules.k)
        scoped = (self._index.search(vector, rules.k, among=rows) for rows in self._by_speaker().values())
        return sorted((each for found in scoped for each in found), key=lambda each: -each[1])

    def _by_speaker(self) -> Mapping[str, NDArray[np.int64]]:
        """Return the positions of each speaker's facts; recomputed after the facts change."""
        if self._places is None:
            places: dict[str, list[int]] = {}
            for place, fact_id in enumerate(self._index.ids):
                places.setdefault(self._facts[fact_id].speaker, []).append(place)
            self._places = {speaker: np.asarray(rows, dtype=np.int64) for speaker, rows in places.items()}
        return self._places

    def _said(self, turn: Turn) -> str:
        """Return the text of a turn with its image's caption, without its speaker, who is a field of its own."""
        caption = self._parts.turn_format.caption(turn)
        return TURN_TEXTS("shares", text=turn.text, caption=caption) if caption else turn.text

    async def _compressed(self, turn: Turn) -> str:
        text, rules = self._said(turn), self._config.compress_rules
        if self._compressor is None or await self._parts.llm.count_tokens(text) < rules.min_tokens:
            return text
        return await asyncio.to_thread(self._compressor.prune, text) or text

    def _length(self, text: str, tokens: int) -> int:
        return self._encoder.count(text) if self._encoder is not None else tokens

    def _batches(self, segments: Sequence[Segment]) -> list[Batch]:
        batches: list[Batch] = []
        for segment in segments:
            self._counts["segments"] += 1
            self._counts["segments.over_limit"] += sum(turn.tokens for turn in segment) > self._config.stm_tokens
            batches += self._short_term.push(segment)
        return batches

    @property
    def _by_time(self) -> bool:
        return self._config.update_rules.mode == "offline_by_time"

    def _moments(self) -> list[str] | None:
        """Time stamps of the facts, oldest fact first; ``None`` where the update does not go by them."""
        return [self._facts[fact_id].moment for fact_id in self._index.ids] if self._by_time else None

    async def _extract(self, writes: Sequence[Sequence[Batch]]) -> None:
        """Extract the facts of all batches at once, and store them in the order of the batches.

        Args:
            writes: batches by the write that completed them.
        """
        role, llm = self._roles["extract"], self._parts.llm
        stamps: dict[str, str] = {}
        for write in writes if self._by_time else ():
            stamps |= moments([turn for batch in write for topic in batch for turn in topic.turns])
        asked = (extract_facts(llm, role, batch, self._config.bare_lists) for write in writes for batch in write)
        for made in await asyncio.gather(*asked):
            self._counts["batches"] += 1
            self._counts.update(made.counts)
            await self._store(made, stamps)

    async def _store(self, made: Extraction, stamps: Mapping[str, str]) -> None:
        facts = [
            DatedFact(
                f"fact_{number}", each.text, each.turn.date, each.turn.speaker, each.topic, each.turn_ids,
                stamps.get(each.turn.turn_id, ""),
            )
            for number, each in enumerate(made.facts, start=self._made)
        ]  # fmt: skip
        self._made += len(facts)
        self._index.add([fact.fact_id for fact in facts], await self._parts.embedder.embed([f.text for f in facts]))
        self._facts.update({fact.fact_id: fact for fact in facts})
        self._places = None

    def statistics(self) -> Mapping[str, Json]:
        """Count facts, segments, batches, updates and fallbacks."""
        return {
            "facts": len(self._facts),
            "facts_extracted": self._made,
            # Without the speakers' names: statistics are published.
            "facts_by_speaker": sorted(Counter(fact.speaker for fact in self._facts.values()).values(), reverse=True),
            "counts": counts_with(_ALWAYS, self._counts),
        }

    def state(self) -> State:
        """Return buffers, facts, vectors and counters."""
        return {
            "sensory": self._sensory.state(),
            "short_term": self._short_term.state(),
            "facts": [fact.state() for fact in self._facts.values()],
            "index": self._index.state(),
            "made": self._made,
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._sensory.load_state(state["sensory"])
        self._short_term.load_state(state["short_term"])
        self._facts = {entry["fact_id"]: DatedFact.from_state(entry) for entry in state["facts"]}
        self._index.load_state(state["index"])
        self._places = None
        self._made = state["made"]
        self._counts = counter_from(state["counts"])
