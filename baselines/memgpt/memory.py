"""MemGPT as a memory system."""

from collections import Counter
from collections.abc import Mapping, Sequence

from baselines.limits import room_for_context
from baselines.memgpt.agent import MemGptAgent
from baselines.memgpt.answering import QuestionSearcher
from baselines.memgpt.config import MemGptConfig
from baselines.memgpt.context import SeenMemories, write_context
from baselines.memgpt.core import CoreMemory
from baselines.memgpt.counts import shown_counts
from baselines.memgpt.feeding import FedSession, feed
from baselines.memgpt.functions import MemoryFunctions
from baselines.memgpt.paging import MainContext
from baselines.memgpt.roles import make_roles
from baselines.memgpt.storage import ArchivalStorage, RecallStorage
from baselines.memgpt.summarising import Summariser
from memsys.counting import counter_state, load_counts
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.units import session_units
from memsys.vocabulary import Conversation, Json, Retrieval, Unit


class MemGptMemory(BaseMemory):
    """An agent that edits its own memory by functions, in a window whose oldest messages are evicted.

    A unit is a session. Turns and passages are embedded in :meth:`prepare`; the agent takes in events in
    :meth:`write`, one after the other. A question is searched for on a copy of the main context and changes nothing.
    """

    def __init__(self, config: MemGptConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles, config.agent_rules, config.core_rules)
        rules, search, window = config.agent_rules, config.search_rules, config.main_rules
        llm, embedder = parts.llm, parts.embedder
        self._counts: Counter[str] = Counter()
        self._core = CoreMemory(config.core_rules)
        self._recall = RecallStorage(embedder, search)
        self._archival = ArchivalStorage(embedder, search.page_size)
        storages = self._core, self._recall, self._archival
        summariser = Summariser(llm, self._roles["summarise"], config.summary_rules, window, self._counts)
        self._context = MainContext(llm, window, rules, summariser, storages, self._counts)
        functions = MemoryFunctions(*storages, embedder, rules)
        self._agent = MemGptAgent(llm, self._roles["agent"], rules, self._context, functions, self._counts)
        self._searcher = QuestionSearcher(llm, self._roles["search"], rules, self._context, functions)

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> FedSession:
        """Cut the session into events and passages, and embed what is searched by cosine.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        embed_turns = self._config.search_rules.recall == "embedding"
        return await feed(self._parts, self._config.ingest_rules, unit, embed_turns=embed_turns)

    async def write(self, unit: Unit, prepared: FedSession) -> None:
        """Show the session to the agent, or store it without asking (mode ``insert``).

        Raises:
            ConfigError: a window leaves no room; better now than when everything is written.
        """
        context = self._config.context_rules
        room_for_context(self._parts.llm, context.max_tokens, context.reserve_tokens)
        self._core.introduce(prepared.speakers)
        rules, asks = self._config.agent_rules, self._config.ingest_rules.mode != "insert"
        role, offered = ("agent", rules.ingest_functions) if asks else ("search", rules.question_functions)
        if not self._recall.records:
            await self._context.check_room(self._roles[role], offered)
        self._recall.add(prepared.records, prepared.vectors)
        self._archival.add(prepared.passages, prepared.passage_vectors)
        for shown in prepared.events:
            if asks:
                await self._agent.take_in(shown)
            else:
                await self._context.append(shown)
                await self._context.make_room(self._roles[role], offered)

    async def retrieve(self, query: str) -> Retrieval:
        """Let the agent search; the hits are what it found, in order, then the latest turns that the reader sees."""
        if not self._recall.records:
            return Retrieval((), "", {"stored": 0}, rankings={"searched": ()})
        config, spans = self._config, dict[str, float]()
        with timed(spans, "search"):
            search = await self._searcher.search(query)
        summary = self._context.summary.text if self._context.summary else ""
        seen = SeenMemories(self._core, summary, search.chain, self._context.messages)
        with timed(spans, "format"):
            written = await write_context(self._parts.llm, config.context_rules, config.texts, seen)
        trace: dict[str, Json] = {
            "stored": len(self._recall.records) + len(self._archival.records),
            "asked": search.asked,
            "ended_by": search.ended_by,
            "searched": "forced" if search.forced else "agent" if search.chain.searched else "none",
            **({} if search.answer is None else {"answered": "agent"}),
            "unseen_messages": search.unseen,
            **written.trace(search.chain),
            "spans": spans,
        }
        return written.retrieval(trace, ranked=search.forced or search.chain.searched, answer=search.answer)

    def statistics(self) -> Mapping[str, Json]:
        """Count what is stored where, calls by function, failed calls by reason, evictions and summaries."""
        summary = self._context.summary
        return {
            "turns_in_recall": len(self._recall.records),
            "messages_in_recall": len(self._recall),
            "archival_notes": len(self._archival.records),
            "core_characters": sum(len(block.text) for block in self._core.blocks.values()),
            "queued_messages": len(self._context.messages),
            "hidden_messages": summary.hidden if summary else 0,
            "summary_words": len(summary.text.split()) if summary else 0,
            "counts": shown_counts(self._counts),
        }

    def state(self) -> State:
        """Return core memory, queue, both storages and counters."""
        return {
            "core": self._core.state(),
            "context": self._context.state(),
            "recall": self._recall.state(),
            "archival": self._archival.state(),
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._core.load_state(state["core"])
        self._context.load_state(state["context"])
        self._recall.load_state(state["recall"])
        self._archival.load_state(state["archival"])
        load_counts(self._counts, state["counts"])
