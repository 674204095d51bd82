"""Two-stage retrieval (paper, section 3.4), with the search of all notes where Stage 1 gives nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memsys.clag.cluster import Partition
from memsys.clag.config import ClagConfig, QuerySource
from memsys.clag.roles import ClagRoles
from memsys.clag.search import Scored, merged, search_clusters
from memsys.clag.selection import ClusterSelection, GlobalReason, SelectionQuery, Selector
from memsys.embedding.contract import Embedder, Vectors
from memsys.index.vector import VectorIndex
from memsys.llm.contract import LanguageModel
from memsys.notes.context import format_context
from memsys.notes.keywords import Keywords, ask_keywords
from memsys.notes.spans import timed
from memsys.notes.store import NoteStore
from memsys.vocabulary import Json, Retrieval


@dataclass(frozen=True, slots=True)
class StageTwoResult:
    """Result of Stage 2. ``searched`` are the searched clusters; none means that all notes were searched."""

    hits: Sequence[Scored]
    searched: tuple[str, ...] = ()
    reason: GlobalReason | None = None


@dataclass(frozen=True, slots=True)
class TwoStageRetrieval:
    """Reads a memory; changes nothing in it."""

    config: ClagConfig
    llm: LanguageModel
    embedder: Embedder
    roles: ClagRoles
    store: NoteStore
    partition: Partition
    everything: VectorIndex
    selector: Selector = field(init=False)

    def __post_init__(self) -> None:
        selector = Selector(self.llm, self.roles.selector, self.config, self.store, self.partition)
        object.__setattr__(self, "selector", selector)

    async def retrieve(self, question: str) -> Retrieval:
        """Find what helps to answer a question."""
        spans: dict[str, float] = {}
        with timed(spans, "keywords"):
            by_question = self.config.empty_keywords == "question"
            keywords = await ask_keywords(self.llm, self.roles.keywords, question, question_if_empty=by_question)
        with timed(spans, "embed"):
            stage1, stage2 = await self._embed(question, keywords)
        with timed(spans, "select"):
            selection = await self._select(question, keywords, stage1)
        with timed(spans, "search"):
            found = self._search(selection, stage2)
        with timed(spans, "format"):
            notes = [self.store[note_id] for note_id, _ in found.hits]
            context = await format_context(self.llm, self.config.context_rules, notes, self.store)
        trace = {**self._trace(keywords, selection, found), **context.trace, "spans": spans}
        hits = tuple(self.store[note_id].hit(score) for note_id, score in found.hits)
        linked = tuple(note.hit(0.0) for note in context.linked)
        return Retrieval(hits, context.text, trace, shown=context.shown, also_shown=linked)

    async def _embed(self, question: str, keywords: Keywords) -> tuple[Vectors, Vectors]:
        """Embed the query of Stage 2 and, where there is a Stage 1, its query with the tags, in one call."""
        texts = [_source(self.config.search_query, question, keywords)]
        if self.config.retrieval_scope == "cluster" and self.partition:
            texts.append(" ".join([_source(self.config.selector_query, question, keywords), *keywords.tags]))
        vectors = await self.embedder.embed(texts)
        return vectors[-1], vectors[0]

    async def _select(self, question: str, keywords: Keywords, vector: Vectors) -> ClusterSelection:
        if self.config.retrieval_scope == "global":
            return ClusterSelection((), (), "configured")
        text = _source(self.config.selector_query, question, keywords)
        return await self.selector.select(SelectionQuery(text, tuple(keywords.tags), vector))

    def _search(self, selection: ClusterSelection, vector: Vectors) -> StageTwoResult:
        count = self.config.k_retrieve
        if selection.selected:
            results = search_clusters(self.partition, selection.selected, vector, count)
            hits = merged(results, self.store, count, self.config.merge)
            if hits:
                return StageTwoResult(hits, selection.selected)
        return StageTwoResult(self.everything.search(vector, count), reason=selection.reason or "no_hits")

    def _trace(self, keywords: Keywords, selection: ClusterSelection, found: StageTwoResult) -> dict[str, Json]:
        stored = len(self.store)
        sizes = [len(self.partition[cluster_id]) for cluster_id in found.searched]
        searched = sum(sizes) if found.searched else stored
        reduction = 1.0 - searched / stored if stored else 0.0
        fallbacks = [f"keywords:{keywords.fallback}"] if keywords.fallback else []
        if found.reason in ("selector_malformed", "selector_off_list"):
            fallbacks.append(f"selector:{found.reason.removeprefix('selector_')}")
        return {
            "keywords": keywords.text,
            "mode": "cluster" if found.searched else "global",
            "reason": found.reason,
            "candidates": list(selection.candidates),
            "selected": list(selection.selected),
            "searched": list(found.searched),
            "profiles": [self._profile(cluster_id) for cluster_id in selection.selected],
            "hit_ids": [note_id for note_id, _ in found.hits],
            "hit_clusters": [self.partition.home(note_id) for note_id, _ in found.hits],
            "searched_notes": searched,
            "stored_notes": stored,
            "searched_clusters": len(found.searched),
            "reduction": reduction,
            "reduction_in_clusters": reduction if found.searched else None,
            "fallbacks": fallbacks,
        }

    def _profile(self, cluster_id: str) -> dict[str, Json]:
        cluster = self.partition[cluster_id]
        return {"id": cluster_id, "summary": cluster.summary, "tags": list(cluster.tags), "size": len(cluster)}


def _source(source: QuerySource, question: str, keywords: Keywords) -> str:
    return question if source == "question" else keywords.text
