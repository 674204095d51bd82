"""GAM as a memory system."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from baselines.gam.config import GamConfig
from baselines.gam.pages import AbstractedPage, cut_pages, drifted
from baselines.gam.research import Findings, Researcher, half_a_window, last_within
from baselines.gam.roles import make_roles
from baselines.gam.searching import PageStore, empty_store
from baselines.limits import count_within, cut_to_tokens, room_for_context
from memsys.counting import counter_from, counter_state, counts_with
from memsys.embedding.contract import Vectors
from memsys.embedding.windows import embed_whole
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.units import session_units
from memsys.vocabulary import Conversation, Json, RankingName, Retrieval, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = ("fallback.abstract", "abstract.duplicate", "abstract.cut", "abstract.page_cut")


@dataclass(frozen=True, slots=True)
class PreparedGamPages:
    """Pages of a session, without abstracts, and their vectors of shape (pages, d)."""

    pages: Sequence[AbstractedPage]
    vectors: Vectors


class GamMemory(BaseMemory):
    """Pages, word for word, in two indexes, and an abstract of each, which is written with a look at those before.

    A unit is a session. Pages are cut and embedded in :meth:`prepare`; a page's abstract waits for the one before it.
    A question is researched in up to three rounds, and changes nothing.
    """

    def __init__(self, config: GamConfig, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._roles = make_roles(config.roles)
        self._store = self._empty_store()
        self._counts: Counter[str] = Counter()

    def _empty_store(self) -> PageStore:
        return empty_store(self._parts.embedder.dimension, self._config.research_rules, self._config.page_rules)

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> PreparedGamPages:
        """Cut the session into pages and embed their texts.

        Raises:
            ConfigError: pages are to be embedded by windows, and nothing is known of the embedder's.
        """
        llm, rules, texts = self._parts.llm, self._config.page_rules, self._config.page_texts
        pages = await cut_pages(llm, unit.turns, self._parts.turn_format, rules, texts)
        shown, embedder = [page.text for page in pages], self._parts.embedder
        whole = rules.embedded == "mean_of_windows"
        return PreparedGamPages(pages, await (embed_whole(embedder, shown) if whole else embedder.embed(shown)))

    async def write(self, unit: Unit, prepared: PreparedGamPages) -> None:
        """Append the pages, each with its abstract (one call).

        Raises:
            ConfigError: the backbone's window leaves no room; better now than when everything is written.
        """
        rules = self._config.context_rules
        room_for_context(self._parts.llm, rules.max_tokens, rules.reserve_tokens)
        for page, vector in zip(prepared.pages, prepared.vectors, strict=True):
            made = replace(page, abstract=await self._abstract(page))
            self._store.vectors.add([made.page_id], vector[None, :])
            self._store.add(made)

    async def _abstract(self, page: AbstractedPage) -> str:
        role, context = self._roles["abstract"], self._config.context_rules
        lines = self._store.abstracts.lines
        room = half_a_window(self._parts, role, context)
        latest = await last_within(self._parts, lines, room)
        self._counts["abstract.cut"] += len(latest) < len(lines)
        shown = await cut_to_tokens(self._parts.llm, page.text, room)
        self._counts["abstract.page_cut"] += shown != page.text
        values = {"abstracts": "\n".join(latest) or self._config.page_texts.nothing, "page": shown}
        text = (await self._parts.llm.ask(role, values, key=page.page_id)).text.strip()
        self._counts["fallback.abstract"] += not text
        self._counts["abstract.duplicate"] += bool(text) and text in self._store.abstracts
        return text

    async def retrieve(self, query: str) -> Retrieval:
        """Research the question; the hits are the pages found, in the order in which they appeared."""
        config, spans = self._config, dict[str, float]()
        researcher = Researcher(
            self._parts,
            self._roles,
            config.research_rules,
            config.context_rules,
            config.page_texts,
            self._store,
        )
        with timed(spans, "select"):
            found = await researcher.research(query)
        with timed(spans, "format"):
            text, left_out, shown = await self._shown(found)
        hits = tuple(self._store.pages[number].hit(page.score) for number, page in found.pages.items())
        trace = {
            "stored": len(self._store.pages),
            "rounds": found.rounds,
            "ended_by": "enough" if found.enough else "rounds",
            "found_by_tool": dict(sorted(found.tools.items())),
            "sources": [self._store.pages[number].page_id for number in found.sources],
            "sources_not_found": sum(number not in found.pages for number in found.sources),
            "pages_cut": found.cut,
            "abstracts_cut": found.abstracts_cut,
            "integrated_words": len(found.text.split()),
            "left_out": left_out,
            "fallbacks": found.fallbacks,
            "spans": spans,
        }
        return Retrieval(hits, text, trace, shown=shown, rankings=self._named(found))

    def _named(self, found: Findings) -> dict[RankingName, tuple[int, ...]]:
        """Return the positions of found pages that the last integration names, in its order."""
        if self._config.context_rules.shown == "pages":
            return {}
        places = {number: place for place, number in enumerate(found.pages)}
        return {"named": tuple(places[number] for number in found.sources if number in places)}

    async def _shown(self, found: Findings) -> tuple[str, int, tuple[int, ...]]:
        """Write what the reader sees; the text is cut from its end, pages are left out from the last.

        Returns:
            The context, how many blocks were left out, and places of the pages that it was made of: those that it
            shows, and those that were integrated into its text, also where that is cut.
        """
        rules, llm = self._config.context_rules, self._parts.llm
        room = room_for_context(llm, rules.max_tokens, rules.reserve_tokens)
        text = await cut_to_tokens(llm, found.text, room) if rules.shown != "pages" else ""
        merged = tuple(place for place, number in enumerate(found.pages) if text and number in found.merged)
        if rules.shown == "integrated":
            return text, 0, merged
        blocks = [*([text] if text else []), *(self._store.pages[number].text for number in found.pages)]
        kept = await count_within(llm, blocks, room)
        shown = set(range(max(kept - bool(text), 0))) | set(merged if kept else ())
        return "\n\n".join(blocks[:kept]), len(blocks) - kept, tuple(sorted(shown))

    def statistics(self) -> Mapping[str, Json]:
        """Count pages, words and what became of abstracts."""
        pages = self._store.pages
        return {
            "pages": len(pages),
            "words": sum(len(page.text.split()) for page in pages),
            "abstract_words": sum(len(page.abstract.split()) for page in pages),
            "drifted_pages": drifted(pages),
            "counts": counts_with(_ALWAYS, self._counts),
        }

    def state(self) -> State:
        """Return pages, vectors and counters; the keyword index follows from the pages."""
        return {
            "pages": [page.state() for page in self._store.pages],
            "vectors": self._store.vectors.state(),
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store = self._empty_store()
        self._store.vectors.load_state(state["vectors"])
        for entry in state["pages"]:
            self._store.add(AbstractedPage.from_state(entry))
        self._counts = counter_from(state["counts"])
