"""MemGPT as its released code runs it: every event, a question too, is taken in by the agent's own loop."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from baselines.limits import room_for_context
from baselines.memgpt.code_agent import ReleasedAgent
from baselines.memgpt.code_config import MemGptCodeConfig
from baselines.memgpt.code_functions import ReleasedFunctions
from baselines.memgpt.code_messages import event, first_messages, turns_event, written_time
from baselines.memgpt.code_store import ReleasedStore
from baselines.memgpt.context import SeenMemories, recent_turns, write_context
from baselines.memgpt.feeding import FedSession, feed
from baselines.memgpt.functions import CallChain
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import FunctionName
from baselines.memgpt.summarising import ReleasedSummariser
from memsys.counting import counter_from, counter_state, counts_with
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Json, Retrieval, Unit

#: Counts that stand in the statistics even when nothing happened.
_ALWAYS = (
    "steps",
    "calls.core_memory_append",
    "calls.core_memory_replace",
    "calls.archival_memory_insert",
    "failed",
    "alerts",
    "evictions",
    "evicted_messages",
    "summaries",
    "fallback.summarise",
    "ended.steps",
    "ended.failures",
)


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
        """One unit per session."""
        sessions = sessions_of(conversation.turns)
        return [Unit(f"{session[0].turn_id}..{session[-1].turn_id}", session, conversation) for session in sessions]

    async def prepare(self, unit: Unit) -> FedSession:
        """Cut the session into events.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        if unit.conversation is None:
            raise ValueError(f"unit {unit.unit_id!r} names no conversation: take it from units(), which sets it")
        speakers = tuple(dict.fromkeys(turn.speaker for turn in unit.conversation.turns if turn.speaker))
        return await feed(self._parts, self._config.ingest_rules, unit.turns, speakers, embed_turns=False)

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
            self._counts.update(f"calls.{name}" for name in chain.calls)
            self._counts.update(f"failed.{reason}" for reason in chain.failures)

    async def _begin(self, store: ReleasedStore) -> None:
        llm = self._parts.llm
        store.add([one.counted(await llm.count_tokens(f"{one.shown}\n")) for one in first_messages(store.time)])

    def _chain(self, offered: Sequence[FunctionName], turn_ids: Sequence[str]) -> CallChain:
        return CallChain(self._store.time, offered, sources=dict.fromkeys(turn_ids))

    async def retrieve(self, query: str) -> Retrieval:
        """Let a copy of the agent take in the question; the last message that it sends is the answer."""
        if not self._store.log:
            return Retrieval((), "", {"stored": 0})
        config, spans, rules = self._config, dict[str, float](), self._config.agent_rules
        store, counts, messages = self._empty(), Counter[str](), list[Json]()
        store.load_state(self._store.state())
        chain = self._chain(rules.question_functions, ())
        key = hashlib.sha256(query.encode()).hexdigest()[:16]
        with timed(spans, "search"):
            agent = self._agent(store, "search", counts, messages)
            asked = event("user_message", store.time, TEXTS("question", question=query))
            ended = await agent.take_in(asked, chain, max(rules.question_steps, 1), key)
        recent = recent_turns([message for message in store.queue if message.lines])
        seen = SeenMemories(
            core=[(block.name, block.text) for block in store.core.blocks.values() if block.text],
            summary=store.summary,
            results=[record for record, _ in chain.found.values()],
            recent=recent,
        )
        with timed(spans, "format"):
            written = await write_context(self._parts.llm, config.context_rules, config.texts, seen)
        latest = recent[len(recent) - written.recent :][::-1]
        hits = [record.hit(score) for record, score in chain.found.values()]
        hits += [record.hit(0.0) for record in latest if record.record_id not in chain.found]
        trace: dict[str, Json] = {
            "stored": len(self._store.log) + len(self._store.archival.records),
            "asked": counts["steps"],
            "calls": dict(sorted(Counter(chain.calls).items())),
            "failed": list(chain.failures),
            "ended_by": ended,
            "searched": "agent" if chain.searched else "none",
            "found": len(chain.found),
            "recent": len(hits) - len(chain.found),
            "left_out": written.left_out,
            "spans": spans,
        }
        return Retrieval(tuple(hits), written.text, trace, ranked=chain.searched, answer=_answer(messages))

    def statistics(self) -> Mapping[str, Json]:
        """Count what is stored where, calls by function, failed calls by reason, evictions and summaries."""
        counts, store = Counter(self._counts), self._store
        counts["failed"] = sum(count for name, count in counts.items() if name.startswith("failed."))
        return {
            "messages_in_recall": len(store.log),
            "archival_notes": len(store.archival.records),
            "core_characters": sum(len(block.text) for block in store.core.blocks.values()),
            "queued_messages": len(store.queue),
            "hidden_messages": store.total - len(store.queue),
            "summary_words": len(store.summary.split()),
            "counts": counts_with(_ALWAYS, counts),
        }

    def state(self) -> State:
        """Return the agent's memory and the counters."""
        return {**self._store.state(), "counts": counter_state(self._counts)}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state)
        self._counts.clear()
        self._counts.update(counter_from(state["counts"]))


def _answer(messages: Sequence[Json]) -> str | None:
    """The last message; ``None`` where the agent sent none, or it is blank."""
    text = messages[-1] if messages else None
    return text.strip() or None if isinstance(text, str) else None
