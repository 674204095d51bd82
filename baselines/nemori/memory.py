"""Nemori as a memory system: the write path and what it keeps."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.nemori.config import NemoriConfig
from baselines.nemori.construction import EpisodeConstruction
from baselines.nemori.roles import make_roles
from baselines.nemori.search import TwoStoreRetrieval
from baselines.nemori.segmenting import cut_batches, segment
from baselines.nemori.store import NemoriStore
from memsys.counting import counter_from, counter_state, counts_with, load_counts
from memsys.episodes.boundary import Segmenter
from memsys.episodes.nodes import Message, MessageBlock
from memsys.episodes.writing import EpisodeDraft, PendingExtraction
from memsys.protocol import BaseMemory, Parts, State
from memsys.turns import sessions_of
from memsys.units import conversation_of
from memsys.vocabulary import Conversation, Json, Retrieval, Turn, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "cut.model",
    "cut.limit",
    "cut.session",
    "cut.batch",
    "cut.end",
    "merges",
    "merge.unknown_target",
    "fallback.boundary",
    "fallback.segment",
    "fallback.episode",
    "fallback.decide_merge",
    "fallback.merge",
    "fallback.extract",
    "fallback.predict",
    "fallback.calibrate",
)


@dataclass(frozen=True, slots=True)
class PreparedEpisodes:
    """Episodes of a unit that is cut by itself, and what happened on the way."""

    drafts: tuple[EpisodeDraft, ...]
    counts: Mapping[str, int]


class NemoriMemory(BaseMemory):
    """Episodes and facts of one conversation.

    What an episode adds depends on the facts of all before it, and whether it is merged on the episodes before it.
    Batches, and sessions where they cut the stream, are cut and described in :meth:`prepare`, since that depends on
    them alone. Else whether a message begins a new episode depends on the messages since the last cut: a write then
    cuts its own messages while the blocks that the write before closed are described. Facts are extracted meanwhile,
    one write behind.
    """

    def __init__(self, config: NemoriConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles)
        self._store = NemoriStore(parts.embedder.dimension)
        self._segmenter = self._new_segmenter()
        self._blocks: list[MessageBlock] = []
        self._construction = EpisodeConstruction(config, parts, self._roles, self._store)
        self._retrieval = TwoStoreRetrieval(config, parts.llm, parts.embedder, self._store)

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut into batches; online into sessions where they cut the stream, else into runs of ``unit_turns`` turns."""
        return [Unit(run[0].turn_id, run, conversation) for run in self._runs(conversation.turns)]

    def _runs(self, turns: tuple[Turn, ...]) -> list[tuple[Turn, ...]]:
        if self._by_batch:
            return cut_batches(turns, self._config.batch_rules)
        if self._by_session:
            return sessions_of(turns)
        size = self._config.unit_turns
        return [turns[start : start + size] for start in range(0, len(turns), size)]

    async def prepare(self, unit: Unit) -> PreparedEpisodes | None:
        """Cut a batch or a session and describe its blocks."""
        messages = self._messages(unit)
        writer = self._construction.writer
        if self._by_batch:
            stream = len(conversation_of(unit).turns)
            cut = await segment(self._parts.llm, self._roles.segment, messages, self._config.batch_rules, stream)
            return PreparedEpisodes(tuple(await writer.describe_all(cut.blocks)), cut.counts)
        if self._by_session:
            segmenter = self._new_segmenter()
            return PreparedEpisodes(await writer.describe_session(segmenter, messages), segmenter.counts)
        return None

    async def write(self, unit: Unit, prepared: PreparedEpisodes | None) -> None:
        """Take in a unit, and move what earlier writes left one step further."""
        construction = self._construction
        waiting = construction.take_waiting()
        if prepared is not None:
            construction.counts.update(prepared.counts)
            async with asyncio.TaskGroup() as group:
                group.create_task(construction.learn(waiting))
                group.create_task(construction.keep(prepared.drafts, batch=self._by_batch))
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(construction.learn(waiting))
            cutting = group.create_task(self._segmenter.take_all(self._messages(unit)))
            described = group.create_task(construction.writer.describe_all(self._blocks))
        self._blocks = cutting.result()
        await construction.keep(described.result(), batch=False)

    async def consolidate(self) -> None:
        """Close the last block and catch up."""
        construction = self._construction
        last = self._segmenter.flush("end")
        blocks = [*self._blocks, *([last] if last is not None else [])]
        self._blocks = []
        waiting = construction.take_waiting()
        async with asyncio.TaskGroup() as group:
            group.create_task(construction.learn(waiting))
            described = group.create_task(construction.writer.describe_all(blocks))
        await construction.keep(described.result(), batch=False)
        await construction.learn(construction.take_waiting())
        self._index_words()

    async def retrieve(self, query: str) -> Retrieval:
        """Find episodes and facts."""
        return await self._retrieval.retrieve(query)

    @property
    def _by_batch(self) -> bool:
        return self._config.segmentation == "batch"

    @property
    def _by_session(self) -> bool:
        return not self._by_batch and self._config.boundary_rules.session_cut

    def _new_segmenter(self) -> Segmenter:
        return Segmenter(self._parts.llm, self._roles.boundary, self._config.boundary_rules)

    def _index_words(self) -> None:
        if self._config.search_rules.method != "vector":
            self._store.index_words()

    def _messages(self, unit: Unit) -> list[Message]:
        return [Message.of(turn, self._parts.turn_format) for turn in unit.turns]

    def statistics(self) -> Mapping[str, Json]:
        """Count episodes, facts, merges and fallbacks; ``episodes`` are those that can be found."""
        store, counts = self._store, self._segmenter.counts + self._construction.counts
        return {
            "episodes": len(store.episode_index),
            "merged_episodes": len(store.merged_into),
            "episode_messages": [len(store.episodes[name].messages) for name in store.episode_index.ids],
            "facts": len(store.facts),
            "facts_per_episode": len(store.facts) / len(store.episode_index) if store.episode_index.ids else 0.0,
            "counts": counts_with(_ALWAYS, counts),
        }

    def state(self) -> State:
        """Return episodes, facts, the open block, what waits to be described or extracted, and counters."""
        construction = self._construction
        return {
            "store": self._store.state(),
            "open": self._segmenter.state(),
            "cuts": counter_state(self._segmenter.counts),
            "blocks": [block.state() for block in self._blocks],
            "waiting": [each.state() for each in construction.waiting],
            "counts": counter_state(construction.counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state["store"])
        self._segmenter.load_state(state["open"])
        self._segmenter.counts = counter_from(state["cuts"])
        self._blocks = [MessageBlock.from_state(entry) for entry in state["blocks"]]
        construction = self._construction
        construction.waiting = [PendingExtraction.from_state(entry) for entry in state["waiting"]]
        load_counts(construction.counts, state["counts"])  # in place: merging adds to it too
        self._index_words()
