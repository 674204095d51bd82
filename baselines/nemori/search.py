"""Retrieval: the nearest episodes and the nearest facts; reads a memory and changes nothing in it."""

from dataclasses import dataclass

from baselines.nemori.config import NemoriConfig
from baselines.nemori.rules import SearchRules
from baselines.nemori.store import NemoriStore
from memsys.embedding.contract import Embedder, Vectors
from memsys.episodes.context import EpisodeContext, episode_entry, fact_line, write_sections
from memsys.index.bm25 import BM25Index
from memsys.index.fusion import fuse
from memsys.index.vector import VectorIndex
from memsys.llm.contract import LanguageModel
from memsys.notes.spans import timed
from memsys.vocabulary import Retrieval

#: Ids with their scores, best first.
Found = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    """A question, and its vector ``(d,)``; ``None`` where nothing is searched by vector."""

    text: str
    vector: Vectors | None


def search(
    rules: SearchRules, question: EmbeddedQuestion, index: VectorIndex, documents: BM25Index, count: int
) -> Found:
    """Find the best ``count`` of one store; scores are cosines, BM25's, or sums of reciprocal ranks."""
    if question.vector is None:
        return _by_words(documents, question.text, count)
    if rules.method == "vector":
        return index.search(question.vector, count)
    near = [name for name, _ in index.search(question.vector, 2 * count)]
    worded = [name for name, _ in _by_words(documents, question.text, 2 * count)]
    names = sorted({*near, *worded}, key=index.position)
    cosines = dict(zip(names, index.cosines(names, question.vector).tolist(), strict=True))
    return fuse([near, worded], cosines, k=rules.rrf_k, depth=2 * count)[:count]


def _by_words(documents: BM25Index, text: str, count: int) -> Found:
    return [(name, score) for name, score in documents.search(text, count) if score > 0]


@dataclass(frozen=True, slots=True)
class TwoStoreRetrieval:
    """Searches both stores and writes what the reader sees."""

    config: NemoriConfig
    llm: LanguageModel
    embedder: Embedder
    store: NemoriStore

    async def retrieve(self, text: str) -> Retrieval:
        """Find what helps to answer a question."""
        search_rules, rules = self.config.search_rules, self.config.context_rules
        store, spans = self.store, dict[str, float]()
        with timed(spans, "embed"):
            question = EmbeddedQuestion(
                text, None if search_rules.method == "bm25" else (await self.embedder.embed([text]))[0]
            )
        with timed(spans, "search"):
            facts = search(search_rules, question, store.fact_index, store.fact_words, search_rules.facts)
            episodes = search(search_rules, question, store.episode_index, store.episode_words, search_rules.episodes)
        raw = tuple(name for name, _ in episodes[: rules.raw_first])
        with timed(spans, "format"):
            context = await self._context(facts, episodes, raw)
        hits = (
            *(store.fact_hit(name, score) for name, score in facts),
            *(store.episode_hit(name, score, raw=name in raw, titled=rules.titles) for name, score in episodes),
        )
        trace = {
            "facts": [name for name, _ in facts],
            "episodes": [name for name, _ in episodes],
            "raw": list(raw),
            "dropped": context.dropped,
            "fallbacks": [],
            "spans": spans,
        }
        shown = (*range(context.facts), *(len(facts) + place for place in range(context.episodes)))
        return Retrieval(hits, context.text, trace, shown=shown)

    async def _context(self, facts: Found, episodes: Found, raw: tuple[str, ...]) -> EpisodeContext:
        rules, texts, store = self.config.context_rules, self.config.texts, self.store
        lines = [fact_line(store.facts[name], texts) for name, _ in facts]
        entries = [
            episode_entry(store.episodes[name], texts, raw=name in raw, titled=rules.titles) for name, _ in episodes
        ]
        return await write_sections(
            self.llm, texts, lines, entries, episodes_first=rules.episodes_first, max_tokens=rules.max_tokens
        )
