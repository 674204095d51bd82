"""ReadAgent as a memory system."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from baselines.limits import room_for_context
from baselines.readagent.config import ReadAgentConfig
from baselines.readagent.gists import with_gist
from baselines.readagent.lookup import Lookup
from baselines.readagent.pages import GistPage, Mixed, mix, page_of, tagged
from baselines.readagent.pagination import paginate
from baselines.readagent.paragraphs import paragraphs_of
from memsys.counting import counter_from, counter_state, counts_with
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.scripts import count_words
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Json, Retrieval, Turn, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = ("paginate.chunks", "paginate.tails", "gist.cut", "fallback.paginate", "fallback.gist")


@dataclass(frozen=True, slots=True)
class PreparedPages:
    """Pages of a unit with their gists, and what happened."""

    pages: Sequence[GistPage]
    counts: Counter[str]


class ReadAgentMemory(BaseMemory):
    """Pages and their gists, in order; no embeddings.

    A unit is a text of its own: a session, or the conversation where pages may cross sessions. It is cut and gisted in
    :meth:`prepare`: a page's cut waits for the page before, gists and units do not wait for each other. A question
    sees all gists, names pages, and is answered from the gists with these pages in full.
    """

    def __init__(self, config: ReadAgentConfig, parts: Parts) -> None:
        self._rules = config.rules()
        self._parts = parts
        self._roles = config.make_roles()
        self._pages: list[GistPage] = []
        self._counts: Counter[str] = Counter()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut the stream where pages always end: between sessions, or nowhere."""
        turns = conversation.turns
        if not self._rules.pages.respect_sessions:
            return [_unit(turns)] if turns else []
        return [_unit(session) for session in sessions_of(turns)]

    async def prepare(self, unit: Unit) -> PreparedPages:
        """Cut the unit into pages and shorten each to its gist."""
        rules, llm = self._rules, self._parts.llm
        paragraphs = paragraphs_of(unit.turns, self._parts.turn_format, rules.pages)
        cut = await paginate(llm, self._roles["paginate"], paragraphs, rules.pages, key=unit.unit_id)
        pages = [page_of(each, rules.pages.dates) for each in cut.pages]
        calls = [
            with_gist(llm, self._roles["gist"], page, rules.gists, key=f"{unit.unit_id}:{number}")
            for number, page in enumerate(pages)
        ]
        gisted = await asyncio.gather(*calls)
        counts = cut.counts + Counter(name for _, names in gisted for name in names)
        return PreparedPages([page for page, _ in gisted], counts)

    async def write(self, unit: Unit, prepared: PreparedPages) -> None:
        """Append the pages; each is counted as it will be shown.

        Raises:
            ConfigError: the backbone's window leaves no room; better now than when everything is written.
        """
        self._room(None)
        self._counts.update(prepared.counts)
        for page in prepared.pages:
            number = len(self._pages)
            tokens = await self._parts.llm.count_tokens(tagged(number, page.full))
            gist_tokens = await self._parts.llm.count_tokens(tagged(number, page.short))
            self._pages.append(replace(page, tokens=tokens, gist_tokens=gist_tokens))

    async def retrieve(self, query: str) -> Retrieval:
        """Choose pages by their gists (one call, or one for each page), and show them among the gists.

        The hits are the opened pages in the order of request. That order is not a ranking: figures of one do not apply.
        """
        rules, spans = self._rules, dict[str, float]()
        with timed(spans, "select"):
            lookup = Lookup(self._parts.llm, self._roles, rules.lookup, self._room(rules.lookup.max_tokens))
            request = await lookup.request(self._pages, query)
        with timed(spans, "format"):
            room = self._room(rules.context.max_tokens)
            mixed = mix(self._pages, request.pages, room, tags=rules.context.page_tags)
        trace = {
            "stored_pages": len(self._pages),
            "requested": list(request.pages),
            "opened": list(mixed.opened),
            "gists_left_out": len(self._pages) - len(mixed.opened) - len(mixed.gists),
            "lookup_calls": request.calls,
            "compression": self._compression_of(mixed),
            "fallbacks": list(request.fallbacks),
            "spans": spans,
        }
        # Every hit is shown in full: a page without room is not a hit but a gist, and gists are no hits.
        hits = tuple(self._pages[number].hit(number) for number in mixed.opened)
        return Retrieval(hits, mixed.text, trace, ranked=False)

    def _room(self, max_tokens: int | None) -> int:
        return room_for_context(self._parts.llm, max_tokens, self._rules.context.reserve_tokens)

    def _compression_of(self, mixed: Mixed) -> float | None:
        shown = sum(self._pages[number].tokens for number in mixed.opened)
        shown += sum(self._pages[number].gist_tokens for number in mixed.gists)
        return _compression(shown, sum(page.tokens for page in self._pages))

    def statistics(self) -> Mapping[str, Json]:
        """Count pages, words, tokens before and after gisting, and fallbacks."""
        pages = self._pages
        words, gist_words = sum(page.words for page in pages), sum(count_words(page.gist) for page in pages)
        return {
            "pages": len(pages),
            "words": words,
            "gist_words": gist_words,
            "tokens": sum(page.tokens for page in pages),
            "gist_tokens": sum(page.gist_tokens for page in pages),
            "compression": _compression(gist_words, words),
            "counts": counts_with(_ALWAYS, self._counts),
        }

    def state(self) -> State:
        """Return pages and counters."""
        return {
            "pages": [page.state() for page in self._pages],
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._pages = [GistPage.from_state(entry) for entry in state["pages"]]
        self._counts = counter_from(state["counts"])


def _unit(turns: Sequence[Turn]) -> Unit:
    return Unit(f"{turns[0].turn_id}..{turns[-1].turn_id}", tuple(turns))


def _compression(short: int, long: int) -> float | None:
    """Return the share of the text that gists left out."""
    return round(1 - short / long, 6) if long else None
