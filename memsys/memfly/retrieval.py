"""The read path: parse the question, search three ways, refine, and write the evidence (paper, 3.4)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from memsys.embedding.contract import Embedder, Vectors
from memsys.llm.contract import LanguageModel
from memsys.memfly.config import MemFlyRules
from memsys.memfly.evidence import Evidence, EvidenceWriter
from memsys.memfly.intent import ask_intent, embed_signals
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.links import LinkGraph
from memsys.memfly.pathways import Nearness, TriPathway, fuse_positions
from memsys.memfly.refinement import Refined, Refinement, Round
from memsys.memfly.roles import MemFlyRoles
from memsys.memfly.store import NoteLayer
from memsys.memfly.topics import Topics
from memsys.notes.spans import timed
from memsys.vocabulary import Json, Retrieval


@dataclass(frozen=True, slots=True)
class Layers:
    """The graph: notes, keywords and links between notes."""

    notes: NoteLayer
    keywords: KeywordLayer
    links: LinkGraph


@dataclass(frozen=True, slots=True)
class MemoryReader:
    """Reads a memory; changes nothing in it.

    Attributes:
        rules: hyperparameters.
        llm: the backbone.
        embedder: shared embedder.
        roles: roles of the backbone.
        layers: the graph.
        topics: gives the topics of the graph as it is now.
    """

    rules: MemFlyRules
    llm: LanguageModel
    embedder: Embedder
    roles: MemFlyRoles
    layers: Layers
    topics: Callable[[], Awaitable[Topics]]
    _pathways: TriPathway = field(init=False)
    _writer: EvidenceWriter = field(init=False)

    def __post_init__(self) -> None:
        layers = self.layers
        pathways = TriPathway(self.rules.retrieval, self.rules.ablate, layers.notes, layers.keywords, layers.links)
        object.__setattr__(self, "_pathways", pathways)
        object.__setattr__(self, "_writer", EvidenceWriter(self.llm, self.rules.evidence, layers.notes))

    async def retrieve(self, question: str) -> Retrieval:
        """Find what helps to answer a question; an empty memory is not asked for anything."""
        if not len(self.layers.notes):
            return Retrieval((), "", {"notes": 0, "spans": {}})
        spans: dict[str, float] = {}
        topics = await self.topics()

        async def search(query: str) -> Round:
            return await self._search(query, topics, spans)

        async def rank(refined: Refined) -> list[tuple[int, float]]:
            return await self._ranked(question, refined)

        refinement = Refinement(self.llm, self.roles, self.rules.ier, self._writer, search, rank)
        refined = await refinement.refine(question, off=self.rules.ablate.ier)
        with timed(spans, "search"):
            ranked = await self._ranked(question, refined)
        with timed(spans, "format"):
            evidence = await self._writer.write([position for position, _ in ranked])
        hits = tuple(self.layers.notes[position].hit(score) for position, score in ranked)
        trace = {**self._trace(refined, ranked, evidence), "spans": spans}
        shown = tuple(place for place, (position, _) in enumerate(ranked) if position in evidence.whole)
        return Retrieval(hits, evidence.text, trace, shown=shown)

    async def _search(self, query: str, topics: Topics, spans: dict[str, float]) -> Round:
        with timed(spans, "keywords"):
            intent = await ask_intent(self.llm, self.roles.intent, query, self.rules.ingest.max_words)
        with timed(spans, "embed"):
            signals = await embed_signals(self.embedder, query, intent)
        with timed(spans, "search"):
            return Round(query, intent, self._pathways.search(signals, topics))

    async def _ranked(self, question: str, refined: Refined) -> list[tuple[int, float]]:
        """Rank what the reader sees: one retrieval's own order, or the rounds' lists fused and cut."""
        first = refined.rounds[0].pool.ranked
        if len(refined.rounds) == 1:
            return list(first[: self.rules.ier.k_context] if self.rules.ier.cap_union else first)
        vector: Vectors = (await self.embedder.embed([question]))[0]
        lists = [[position for position, _ in each.pool.ranked] for each in refined.rounds]
        near = Nearness(self.layers.notes, vector)
        fused = fuse_positions(lists, near, k=self.rules.retrieval.rrf_k, depth=max(map(len, lists)))
        if self.rules.ier.cap_union:
            return fused[: self.rules.ier.k_context]
        scores = dict(fused)
        return [(position, scores[position]) for position in refined.union]

    def _trace(self, refined: Refined, ranked: Sequence[tuple[int, float]], evidence: Evidence) -> dict[str, Json]:
        notes = self.layers.notes
        fallbacks = [name for each in refined.rounds for name in each.intent.fallbacks]
        if refined.stop == "malformed":
            fallbacks.append("sufficient:malformed")
        fallbacks += ["draft:empty" for draft in refined.drafts if not draft]
        return {
            "notes": len(notes),
            "rounds": [self._round(each) for each in refined.rounds],
            "stop": refined.stop,
            "checks": len(refined.drafts),
            "drafts": list(refined.drafts),
            "union": len(refined.union),
            "first_pool": [notes[position].note_id for position, _ in refined.rounds[0].pool.ranked],
            "pathways": self._shares(refined, [position for position, _ in ranked]),
            "turns": len({turn_id for position, _ in ranked for turn_id in notes[position].turn_ids}),
            "evidence_chars": len(evidence.text),
            "dropped_lines": evidence.dropped_lines,
            "fallbacks": fallbacks,
        }

    def _round(self, each: Round) -> dict[str, Json]:
        reached = {name: pathway.reached for name, pathway in each.pool.pathways.items()}
        return {
            "query": each.query,
            "topic": each.intent.topic,
            "keywords": list(each.intent.keywords),
            "reached": reached,
            "pool": len(each.pool.ranked),
            "filled": each.pool.filled,
        }

    def _shares(self, refined: Refined, shown: Sequence[int]) -> dict[str, Json]:
        """Count the notes shown that each pathway found in any round; a note may count for several."""
        found: dict[str, set[int]] = {}
        for each in refined.rounds:
            for name, pathway in each.pool.pathways.items():
                found.setdefault(name, set()).update(pathway.ranked)
        counts = {name: sum(position in members for position in shown) for name, members in found.items()}
        anywhere = set().union(*found.values())
        return {**counts, "fill": sum(position not in anywhere for position in shown)}
