"""MemFly as a memory system: what it holds, and when its topics are made again."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from memsys.counting import counter_from, counter_state
from memsys.memfly.config import MemflyConfig
from memsys.memfly.counts import write_statistics
from memsys.memfly.ingest import Denoised, NoteIngestion
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.links import LinkGraph
from memsys.memfly.retrieval import Layers, MemoryReader
from memsys.memfly.roles import update_for
from memsys.memfly.store import NoteLayer
from memsys.memfly.topics import Topics, build_topics
from memsys.memfly.update import DuplicateJudge
from memsys.memfly.writing import Writing
from memsys.protocol import BaseMemory, Parts, State
from memsys.seeding import stable_seed
from memsys.vocabulary import Json, Retrieval, Unit


class MemflyMemory(BaseMemory):
    """Notes, keywords and topics of one conversation.

    A write is one call (none while nothing is stored that resembles the turn) and, where a stored note's text changes,
    one batch of embeddings; denoising happens in :meth:`prepare`. Topics are a function of the keywords as they are and
    are read by queries alone. So where they fall due in the stream this is only counted (``topics.due``); they are made
    by whoever first needs them: the end of the stream, or a query, whose topics last until the next write and are no
    part of the state.
    """

    def __init__(self, config: MemflyConfig, parts: Parts) -> None:
        rules, roles = config.rules(), config.make_roles()
        dimension = parts.embedder.dimension
        keywords = KeywordLayer(dimension, rules.ingest.reuse_cosine, rules.ingest.reuse_checked)
        notes = NoteLayer(dimension, rules.candidates, keywords)
        self._rules = rules
        self._layers = Layers(notes, keywords, LinkGraph())
        self._seed = stable_seed(parts.seed, parts.conversation_id, "topics")
        self._topics = Topics((), np.zeros((0, dimension), dtype=np.float32))
        self._outdated = False  # notes were written since the topics were built
        self._changes = 0  # writes that changed the graph, to tell whether one came while topics were built
        self._own: Topics | None = None  # of the graph as it is, where a query built them
        self._stale = 0  # notes written since topics last fell due
        self._session: str | None = None
        self._ingestion = NoteIngestion(
            parts.llm, parts.embedder, roles.ingest, parts.turn_format, rules.ingest, not rules.ablate.denoise
        )
        most = range(1, rules.candidates.kept + 1)
        updates = [update_for(roles.update, count) if rules.update.constrain_ids else roles.update for count in most]
        judge = DuplicateJudge(parts.llm, updates, notes, keywords, rules.candidates.shown_chars)
        self._writing = Writing(rules, parts.embedder, judge, self._layers)
        self._reading = MemoryReader(rules, parts.llm, parts.embedder, roles, self._layers, self._current_topics)

    async def prepare(self, unit: Unit) -> Denoised:
        """Denoise the unit and embed what came of it."""
        return await self._ingestion.denoise_unit(unit)

    async def write(self, unit: Unit, prepared: Denoised) -> None:
        """Merge or append the unit and link it; count where new topics are due."""
        session = unit.turns[0].session_id
        if self._rules.topics.at_session_end and self._session not in (None, session):
            self._count_due()
        self._session = session
        if await self._writing.write(unit.unit_id, prepared):
            self._stale += 1
            self._changes += 1
            self._outdated, self._own = True, None
        every = self._rules.topics.every_notes
        if every is not None and self._stale >= every:
            self._count_due()

    async def consolidate(self) -> None:
        """Bring the topics up to date once the stream has ended."""
        self._count_due()
        before = self._changes
        topics = await self._current_topics()
        if self._changes == before:
            self._topics, self._outdated, self._own = topics, False, None

    async def retrieve(self, query: str) -> Retrieval:
        """Find notes by topics, keywords and links, and ask for more while the evidence does not suffice."""
        return await self._reading.retrieve(query)

    def _count_due(self) -> None:
        if self._stale and not self._rules.ablate.topic:
            self._writing.counts["topics.due"] += 1
        self._stale = 0

    async def _current_topics(self) -> Topics:
        if not self._outdated or self._rules.ablate.topic:
            return self._topics
        if self._own is not None:
            return self._own
        before = self._changes
        topics = await build_topics(self._layers.keywords, self._rules.topics, self._seed)
        if self._changes == before:  # else they are of a graph that is no more
            self._own = topics
        return topics

    def statistics(self) -> Mapping[str, Json]:
        """Count notes, keywords, topics (as of the end of the stream), links, operations, strengths and fallbacks."""
        counts, smallest = self._writing.counts, self._rules.topics.min_keywords
        return write_statistics(self._layers, self._topics, counts, smallest)

    def state(self) -> State:
        """Return the graph, the topics and the counters."""
        layers, writing = self._layers, self._writing
        return {
            "notes": layers.notes.state(),
            "keywords": layers.keywords.state(),
            "links": layers.links.state(),
            "topics": [members.tolist() for members in self._topics.members],
            "stale": self._stale,
            "outdated": self._outdated,
            "session": self._session,
            "counts": counter_state(writing.counts),
            "turns": writing.turns,
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        notes, keywords, links = self._layers.notes, self._layers.keywords, self._layers.links
        notes.load_state(state["notes"])
        keywords.load_state(state["keywords"], list(notes))
        notes.index_words()
        links.load_state(state["links"])
        members = [np.array(numbers, dtype=np.int64) for numbers in state["topics"]]
        known = sorted(number for numbers in state["topics"] for number in numbers)
        self._topics = Topics.of(members, keywords.vectors(range(len(known))))
        self._stale, self._session = int(state["stale"]), state["session"]
        # Snapshots written before the distinction hold topics that were built when they last fell due.
        self._outdated, self._own = bool(state.get("outdated", self._stale)), None
        self._changes += 1
        self._writing.counts = _counts_of(state["counts"])
        self._writing.turns = int(state["turns"])


def _counts_of(state: Any) -> Counter[str]:
    """Restore counts; what is ``topics.due`` was called ``topics.rebuilt`` in older snapshots."""
    counts = counter_from(state)
    if "topics.rebuilt" in counts:
        counts["topics.due"] += counts.pop("topics.rebuilt")
    return counts
