"""MemGPT as its released code runs it: every event, a question too, is taken in by the agent's own loop."""

from collections import Counter
from collections.abc import Mapping, Sequence

from baselines.limits import room_for_context
from baselines.memgpt.code_agent import ReleasedAgent
from baselines.memgpt.code_config import MemGptCodeConfig
from baselines.memgpt.code_functions import ReleasedFunctions
from baselines.memgpt.code_messages import event, first_messages, turns_event, written_time
from baselines.memgpt.code_store import ReleasedStore
from baselines.memgpt.context import SeenMemories, write_context
from baselines.memgpt.counts import add_calls, shown_counts
from baselines.memgpt.feeding import FedSession, feed
from baselines.memgpt.functions import CallChain
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import FunctionName
from baselines.memgpt.summarising import ReleasedSummariser
from memsys.counting import counter_state, load_counts
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.seeding import question_key
from memsys.units import session_units
from memsys.vocabulary import Conversation, Json, Retrieval, Unit


class MemGptCodeMemory(BaseMemory):
    """The released agent, whose user tells it a conversation session by session and then asks.

    A question is taken in by a copy of the agent with all that it has, which is thrown away afterwards.
    """

    def __init__(self, config: MemGptCodeConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = config.make_roles()
        self._counts: Counter[str] = Counter()
        self._store = self._empty()

    def _empty(self) -> ReleasedStore:
        return ReleasedStore.empty(self._config.core_rules, self._config.search_rules, self._parts.embedder)

    def _agent(self, store: ReleasedStore, role: str, counts: Counter[str], messages: list[Json]) -> ReleasedAgent:
        config, llm = self._config, self._parts.llm
        rules, window = config.agent_rules, config.main_rules
        summariser = ReleasedSummariser(llm, self._roles["summarise"], config.summary_rules, window, counts)
        functions = ReleasedFunctions(store, self._parts.embedder, rules, messages)
        return ReleasedAgent(llm, self._roles[role], rules, window, summariser, store, functions, counts)

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> FedSession:
        """Cut the session into events.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        return await feed(self._parts, self._config.ingest_rules, unit, embed_turns=False)

    async def write(self, unit: Unit, prepared: FedSession) -> None:
        """Show the session to the agent.

        Raises:
            ConfigError: a window leaves no room; better now than when everything is written.
        """
        config, store = self._config, self._store
        room_for_context(self._parts.llm, config.context_rules.max_tokens, config.context_rules.reserve_tokens)
        agent, rules = self._agent(store, "agent", self._counts, []), config.agent_rules
        for shown in prepared.events:
            store.time = written_time(shown.date)
            chain = self._chain(rules.ingest_functions, shown.turn_ids)
            if not store.log:
                store.core.introduce(prepared.speakers)
                await agent.check_room(chain)
                await self._begin(store)
            told = turns_event(store.time, shown.lines, shown.turn_ids)
            ended = await agent.take_in(told, chain, rules.ingest_steps, shown.turn_ids[0])
            self._counts[f"ended.{ended}"] += 1
            add_calls(self._counts, chain)

    async def _begin(self, store: ReleasedStore) -> None:
        llm = self._parts.llm
        store.add([one.counted(await llm.count_tokens(f"{one.shown}\n")) for one in first_messages(store.time)])

    def _chain(self, offered: Sequence[FunctionName], turn_ids: Sequence[str]) -> CallChain:
        return CallChain(self._store.time, offered, sources=dict.fromkeys(turn_ids))

    async def retrieve(self, query: str) -> Retrieval:
        """Let a copy of the agent take in the question; the last message that it sends is the answer."""
        if not self._store.log:
            return Retrieval((), "", {"stored": 0}, rankings={"searched": ()})
        config, spans, rules = self._config, dict[str, float](), self._config.agent_rules
        store, counts, messages = self._empty(), Counter[str](), list[Json]()
        store.load_state(self._store.state())
        chain = self._chain(rules.question_functions, ())
        key = question_key(query)
        with timed(spans, "search"):
            agent = self._agent(store, "search", counts, messages)
            asked = event("user_message", store.time, TEXTS("question", question=query))
            ended = await agent.take_in(asked, chain, max(rules.question_steps, 1), key)
        seen = SeenMemories(store.core, store.summary, chain, store.queue)
        with timed(spans, "format"):
            written = await write_context(self._parts.llm, config.context_rules, config.texts, seen)
        trace: dict[str, Json] = {
            "stored": len(self._store.log) + len(self._store.archival.records),
            "asked": counts["steps"],
            "ended_by": ended,
            "searched": "agent" if chain.searched else "none",
            **written.trace(chain),
            "spans": spans,
        }
        return written.retrieval(trace, ranked=chain.searched, answer=_answer(messages))

    def statistics(self) -> Mapping[str, Json]:
        """Count what is stored where, calls by function, failed calls by reason, evictions and summaries."""
        store = self._store
        return {
            "messages_in_recall": len(store.log),
            "archival_notes": len(store.archival.records),
            "core_characters": sum(len(block.text) for block in store.core.blocks.values()),
            "queued_messages": len(store.queue),
            "hidden_messages": store.total - len(store.queue),
            "summary_words": len(store.summary.split()),
            "counts": shown_counts(self._counts),
        }

    def state(self) -> State:
        """Return the agent's memory and the counters."""
        return {**self._store.state(), "counts": counter_state(self._counts)}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state)
        load_counts(self._counts, state["counts"])


def _answer(messages: Sequence[Json]) -> str | None:
    """Return the agent's last message; ``None`` where it sent none or a blank one."""
    text = messages[-1] if messages else None
    return text.strip() or None if isinstance(text, str) else None
