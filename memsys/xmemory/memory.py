"""xMemory as a memory system: the write path and what it keeps."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memsys.counting import counter_from, counter_state
from memsys.episodes.boundary import Segmenter
from memsys.episodes.nodes import Message, MessageBlock
from memsys.episodes.writing import EpisodeDraft, PendingExtraction
from memsys.protocol import BaseMemory, Parts, State
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Json, Retrieval, Unit
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.construction import HierarchyConstruction
from memsys.xmemory.counts import write_statistics
from memsys.xmemory.retrieval import TopDownRetrieval
from memsys.xmemory.roles import make_roles
from memsys.xmemory.store import HierarchyStore


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """A session's episodes, where sessions cut the stream, and what happened on the way."""

    drafts: tuple[EpisodeDraft, ...] = ()
    counts: Mapping[str, int] | None = None


class XMemory(BaseMemory):
    """Episodes, facts and themes of one conversation.

    Whether a message begins a new episode depends on the messages since the last cut, and what an episode adds on the
    facts of all before it: two chains, of which the second needs only what the first has closed. A write therefore
    cuts its own messages while it describes the blocks that the write before closed and extracts the facts of the
    episodes made in it. Where a session always begins a new episode, cutting and describing depend on the session alone
    and happen in :meth:`prepare`.
    """

    def __init__(self, config: XMemoryConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles, config.gate_rules.estimator, config.semantic_rules.mode)
        self._store = HierarchyStore(config.theme_rules, config.graph_rules, parts.embedder.dimension)
        self._segmenter = self._new_segmenter()
        self._blocks: list[MessageBlock] = []
        self._construction = HierarchyConstruction(config, parts, self._roles, self._store)
        self._retrieval = TopDownRetrieval(config, parts.llm, parts.embedder, self._roles, self._store)

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut into sessions where they cut the stream, else into runs of ``unit_turns`` turns."""
        turns = conversation.turns
        if self._by_session:
            runs = sessions_of(turns)
        else:
            size = self._config.unit_turns
            runs = [turns[start : start + size] for start in range(0, len(turns), size)]
        return [Unit(unit_id=run[0].turn_id, turns=run) for run in runs]

    async def prepare(self, unit: Unit) -> PreparedSession:
        """Cut a session and describe its blocks, where that depends on it alone."""
        if not self._by_session:
            return PreparedSession()
        segmenter = self._new_segmenter()
        drafts = await self._construction.writer.describe_session(segmenter, self._messages(unit))
        return PreparedSession(drafts, segmenter.counts)

    async def write(self, unit: Unit, prepared: PreparedSession) -> None:
        """Take in messages, and move what earlier writes left one step further."""
        if self._by_session:
            self._segmenter.counts.update(prepared.counts or {})
            await self._construction.keep(prepared.drafts)
            await self._learn()
            return
        async with asyncio.TaskGroup() as group:
            cutting = group.create_task(self._segmenter.take_all(self._messages(unit)))
            described = group.create_task(self._construction.writer.describe_all(self._blocks))
            group.create_task(self._learn())
        self._blocks = cutting.result()
        await self._construction.keep(described.result())

    async def consolidate(self) -> None:
        """Close the last block, catch up, organise and name the themes."""
        last = self._segmenter.flush("end")
        blocks = [*self._blocks, *([last] if last is not None else [])]
        self._blocks = []
        async with asyncio.TaskGroup() as group:
            described = group.create_task(self._construction.writer.describe_all(blocks))
            group.create_task(self._learn())
        await self._construction.keep(described.result())
        await self._learn()
        await self._construction.finish()

    async def retrieve(self, query: str) -> Retrieval:
        """Find themes and facts, and the episodes that make the backbone surer of its answer."""
        return await self._retrieval.retrieve(query)

    @property
    def _by_session(self) -> bool:
        return self._config.boundary_rules.session_cut

    def _new_segmenter(self) -> Segmenter:
        return Segmenter(self._parts.llm, self._roles.boundary, self._config.boundary_rules)

    def _messages(self, unit: Unit) -> list[Message]:
        return [Message.of(turn, self._parts.turn_format) for turn in unit.turns]

    async def _learn(self) -> None:
        """Extract the facts of all episodes so far."""
        construction = self._construction
        waiting, construction.waiting = construction.waiting, []
        await construction.learn(waiting)

    def statistics(self) -> Mapping[str, Json]:
        """Count episodes, facts, themes, reassignments and fallbacks."""
        counts = self._segmenter.counts + self._construction.counts + self._store.themes.counts
        return write_statistics(self._store, counts, self._construction.objectives)

    def state(self) -> State:
        """Return the hierarchy, the open block, what waits to be described or extracted, and counters."""
        construction = self._construction
        return {
            "store": self._store.state(),
            "open": self._segmenter.state(),
            "cuts": counter_state(self._segmenter.counts),
            "blocks": [block.state() for block in self._blocks],
            "waiting": [each.state() for each in construction.waiting],
            "counts": counter_state(construction.counts),
            "objectives": dict(construction.objectives),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state["store"])
        self._segmenter.load_state(state["open"])
        self._segmenter.counts = counter_from(state["cuts"])
        self._blocks = [MessageBlock.from_state(entry) for entry in state["blocks"]]
        construction = self._construction
        construction.waiting = [PendingExtraction.from_state(entry) for entry in state["waiting"]]
        construction.counts = counter_from(state["counts"])
        construction.objectives = {stage: float(value) for stage, value in state["objectives"].items()}
