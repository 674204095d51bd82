"""MemoryOS as a memory system."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.limits import room_for_context
from baselines.memoryos.chains import ChainSummaries
from baselines.memoryos.config import MemoryOSConfig
from baselines.memoryos.context import FoundMemories, write_memories
from baselines.memoryos.long_term import FactQueue, LongTermMemory, SpeakerFact
from baselines.memoryos.pages import DialoguePage, PagedConversation, QueuedPage
from baselines.memoryos.preparing import PagePreparation, cased
from baselines.memoryos.roles import make_roles
from baselines.memoryos.segments import MidTermMemory
from memsys.counting import counter_from, counter_state, counts_with
from memsys.index.vector import VectorIndex
from memsys.index.words import words
from memsys.notes.keywords import ask_keywords
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.units import conversation_of, session_units
from memsys.vocabulary import Conversation, Json, Retrieval, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "fallback.continues",
    "fallback.chain",
    "fallback.topics",
    "fallback.profile",
    "fallback.merge_profile",
    "promotions",
    "promotions.nothing_new",
)
#: The same for turns that no page has, and turns on a page of another session, where pairs are made as released.
_LOST_IN_PAIRS = ("lost.turns_without_a_pair", "misdated.turns")
#: The same for pages that are dropped, where pages without a readable topic are.
_LOST_WITHOUT_TOPICS = ("lost.pages_without_topics", "lost.turns_without_topics")


@dataclass(frozen=True, slots=True)
class QueuedSession:
    """Pages of a session with what was asked about them, who speaks, and what happened.

    Attributes:
        pages: that the session completes.
        idle: of each page, how many with one side, which are lost, were to be queued right before it.
        idle_after: how many after the conversation's last page.
        user: name.
        agent: name.
        counts: of losses and fallbacks.
    """

    pages: Sequence[QueuedPage]
    idle: Sequence[int]
    idle_after: int
    user: str
    agent: str
    counts: Counter[str]


class MemoryOSMemory(BaseMemory):
    """A queue of pages, segments of those that left it, and a profile with facts from the hottest segments.

    A unit is a session. Whether a page goes on with the one before, its topics, and chains that begin in the session
    are asked in :meth:`prepare`; segments, heat and profile change in :meth:`write`, page by page. Questions visit
    nothing: what one finds does not change what the next one sees.
    """

    def __init__(self, config: MemoryOSConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles)
        dimension = parts.embedder.dimension
        self._paged: PagedConversation | None = None
        self._queue: list[QueuedPage] = []
        self._mid_term = MidTermMemory(dimension, config.mid_term_rules, config.heat_rules)
        self._long_term = LongTermMemory(parts, self._roles, config.long_term_rules, config.layout)
        self._index = VectorIndex(dimension)
        self._pages: dict[str, DialoguePage] = {}
        self._chains = ChainSummaries(config.mid_term_rules.chain_shown)
        self._read: set[str] = set()
        self._user = self._agent = ""
        self._counts: Counter[str] = Counter()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> QueuedSession:
        """Cut the session into pages, embed them, and ask about those that will leave the queue.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        paged = self._cut(conversation_of(unit))
        every, (first, last) = paged.pages, paged.span(unit.turns)
        flushed = len(every) - self._config.short_term_rules.kept(len(every))
        preparation = PagePreparation(self._parts, self._roles, self._config.mid_term_rules)
        previous = every[first - 1] if first else None
        pages = await preparation.queued(every[first:last], previous, min(max(flushed - first, 0), last - first))
        lost = {"lost.turns_without_a_pair": paged.lost(unit.turns), "misdated.turns": paged.misdated(unit.turns)}
        idle_after = paged.idle[-1] if last == len(every) and pages else 0
        counts = preparation.counts + Counter(lost)
        return QueuedSession(pages, paged.idle[first:last], idle_after, paged.user, paged.agent, counts)

    def _cut(self, conversation: Conversation) -> PagedConversation:
        """Cut a conversation into pages, once for all of its units."""
        if self._paged is None or self._paged.conversation is not conversation:
            self._paged = PagedConversation(conversation, self._parts.turn_format, self._config.pages)
        return self._paged

    async def write(self, unit: Unit, prepared: QueuedSession) -> None:
        """Queue the pages one after the other; whatever leaves the queue goes into segments.

        Raises:
            ConfigError: the backbone's window leaves no room; better now than when everything is written.
        """
        context, rules = self._config.context_rules, self._config.short_term_rules
        room_for_context(self._parts.llm, context.max_tokens, context.reserve_tokens)
        self._user, self._agent = prepared.user, prepared.agent
        self._counts.update(prepared.counts)
        before = rules.flush == "before_append"
        for page, idle in zip(prepared.pages, prepared.idle, strict=True):
            await self._promote_again(idle, page.page.date)
            if before and len(self._queue) >= rules.capacity:
                await self._flush(self._queue.pop(0))
            self._queue.append(page)
            if not before and len(self._queue) >= rules.capacity:
                await self._flush(self._queue.pop(0))
            await self._promote(page.page.date)
        if prepared.idle_after:
            await self._promote_again(prepared.idle_after, prepared.pages[-1].page.date)

    async def _promote_again(self, times: int, now: str) -> None:
        """Look for a hot segment where the released code does: after each page with one side too, which it drops."""
        for _ in range(times):
            await self._promote(now)

    async def _flush(self, queued: QueuedPage) -> None:
        """Put a page into its chain and into the segments of its topics, or drop it where it has none."""
        page, rules = queued.page, self._config.mid_term_rules
        dropped = not queued.topics and rules.unread_topics == "drop"
        await self._chain(queued, stored=not dropped)
        if dropped:
            self._counts["lost.pages_without_topics"] += 1
            self._counts["lost.turns_without_topics"] += len(page.turn_ids)
            return
        self._pages[page.page_id] = page
        self._index.add([page.page_id], queued.vector[None, :])
        for topic in queued.topics:
            opened = self._mid_term.insert(topic, page.page_id, page.date)
            if opened is not None and rules.keywords_of == "asked":
                named = await ask_keywords(
                    self._parts.llm, self._roles["keywords"], opened.summary, question_if_empty=False
                )
                opened.keywords = tuple(dict.fromkeys(cased(tag, rules) for tag in named.tags))

    async def _chain(self, queued: QueuedPage, *, stored: bool) -> None:
        """Make the latest chain the page's; a page that is dropped belongs to it too."""
        chain = queued.chain
        if chain is None:
            preparation = PagePreparation(self._parts, self._roles, self._config.mid_term_rules)
            chain = await preparation.chain_summary(self._chains.latest if queued.continues else "", queued.page)
            self._counts.update(preparation.counts)
        self._chains.add(queued.page.page_id, chain, continues=queued.continues, stored=stored)

    async def _promote(self, now: str) -> None:
        """Read the new pages of the hottest segment for profile and facts, if it is hot enough."""
        if not self._config.long_term_rules.enabled or not self._agent:
            return
        segment = self._mid_term.hottest(now)
        if segment is None:
            return
        new = [self._pages[page] for page in segment.pages if page not in self._read]
        if new:
            await self._long_term.read(new, self._user, self._agent, key=new[-1].page_id)
            self._read.update(page.page_id for page in new)
        else:
            self._counts["promotions.nothing_new"] += 1
            if self._config.heat_rules.nothing_new == "block":
                return
        segment.interactions, segment.last_visit = 0, now

    async def retrieve(self, query: str) -> Retrieval:
        """Find pages in the segments nearest to the question, and facts about the speakers."""
        rules, spans = self._config.search_rules, dict[str, float]()
        with timed(spans, "keywords"):
            keywords, fallbacks = await self._keywords(query)
        with timed(spans, "embed"):
            vector = (await self._parts.embedder.embed([query]))[0]
        with timed(spans, "search"):
            found = self._search(vector, keywords)
            user = self._facts(self._long_term.user_facts, vector, rules.user_facts)
            agent = self._facts(self._long_term.agent_facts, vector, rules.agent_facts)
        with timed(spans, "format"):
            memories = FoundMemories(
                recent=[queued.page for queued in self._queue],
                pages=[(self._pages[name], self._chains.of(name)) for name, _ in found],
                profile=self._long_term.profile,
                user_facts=user,
                agent_facts=agent,
                user=self._user,
                agent=self._agent,
            )
            written = await write_memories(self._parts.llm, self._config.context_rules, self._config.texts, memories)
        trace = {
            "stored": len(self._pages),
            "facts": [fact.fact_id for fact in (*user, *agent)],
            "left_out": written.left_out,
            "keywords": keywords,
            "fallbacks": fallbacks,
            "spans": spans,
        }
        # A copy takes a place among the pages found and is shown; as a hit the page counts once.
        hits = tuple(self._pages[name].hit(score) for name, score in dict(found).items())
        in_text = {name for name, _ in found[: written.pages]}
        shown = tuple(place for place, name in enumerate(dict(found)) if name in in_text)
        return Retrieval(hits, written.text, trace, shown=shown, also_shown=written.others)

    async def _keywords(self, query: str) -> tuple[list[str], list[str]]:
        """Name keywords of a question; where the reply names none, its first words are taken."""
        rules = self._config.search_rules
        if not rules.query_keywords or not self._mid_term.segments:
            return [], []
        made = await ask_keywords(self._parts.llm, self._roles["keywords"], query, question_if_empty=False)
        named = [cased(tag, self._config.mid_term_rules) for tag in made.tags][: rules.max_keywords]
        if named or rules.keyword_fallback == "none":
            return named, []
        return words(query)[: rules.max_keywords], ["keywords:words"]

    def _search(self, vector: NDArray[np.float32], keywords: Sequence[str]) -> list[tuple[str, float]]:
        """Find the best pages of the best segments, each once, or as often as the segments have it."""
        rules = self._config.search_rules
        segments = self._mid_term.search(vector, keywords, rules.segments, rules.segment_score)
        times = Counter(page for segment in segments for page in segment.pages)
        names = sorted(times, key=self._index.position)
        among = np.asarray([self._index.position(name) for name in names], dtype=np.int64)
        found = self._index.search(vector, rules.pages, among=among)
        good = [(name, score) for name, score in found if score >= rules.page_cos]
        if not self._config.mid_term_rules.copies:
            return good
        return [each for each in good for _ in range(times[each[0]])][: rules.pages]

    def _facts(self, queue: FactQueue, vector: NDArray[np.float32], most: int | None) -> list[SpeakerFact]:
        if most is None:
            return list(queue.facts.values())
        found = queue.index.search(vector, most)
        return [queue.facts[name] for name, score in found if score >= self._config.search_rules.fact_cos]

    def statistics(self) -> Mapping[str, Json]:
        """Count pages, segments, promotions, facts and fallbacks."""
        sizes = [len(segment.pages) for segment in self._mid_term.segments.values()]
        return {
            "pages": len(self._pages) + len(self._queue),
            "pages_in_queue": len(self._queue),
            "segments": len(sizes),
            "segments_opened": self._mid_term.opened,
            "segments_evicted": self._mid_term.evicted,
            "pages_per_segment": round(sum(sizes) / len(sizes), 6) if sizes else None,
            "pages_in_two_segments": sum(sizes) - len({p for s in self._mid_term.segments.values() for p in s.pages}),
            "chains": len(self._chains),
            "user_facts": len(self._long_term.user_facts.facts),
            "agent_facts": len(self._long_term.agent_facts.facts),
            "profile_words": len(self._long_term.profile.split()),
            "counts": counts_with(self._always(), self._counts + self._long_term.counts),
        }

    def _always(self) -> Sequence[str]:
        """Name the counts that the statistics have in any case."""
        drops = self._config.mid_term_rules.unread_topics == "drop"
        pairs = self._config.pages == "released_pairs"
        return (*_ALWAYS, *(_LOST_IN_PAIRS if pairs else ()), *(_LOST_WITHOUT_TOPICS if drops else ()))

    def state(self) -> State:
        """Return queue, pages, segments, profile, facts and counters."""
        return {
            "queue": [page.state() for page in self._queue],
            "pages": [page.state() for page in self._pages.values()],
            "index": self._index.state(),
            "mid_term": self._mid_term.state(),
            "long_term": self._long_term.state(),
            **self._chains.state(),
            "read": sorted(self._read),
            "user": self._user,
            "agent": self._agent,
            "counts": counter_state(self._counts + self._long_term.counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._queue = [QueuedPage.from_state(each) for each in state["queue"]]
        self._pages = {each["page_id"]: DialoguePage.from_state(each) for each in state["pages"]}
        self._index.load_state(state["index"])
        self._mid_term.load_state(state["mid_term"])
        self._long_term.load_state(state["long_term"])
        self._chains.load_state(state)
        self._read = set(state["read"])
        self._user, self._agent = state["user"], state["agent"]
        self._counts = counter_from(state["counts"])
        self._long_term.counts = Counter()
