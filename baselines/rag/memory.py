"""Plain retrieval as a memory system: no backbone call at write time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from baselines.passages import Passage, passage_of_turn, shown_together
from baselines.rag.chunking import ChunkPacker, CountedTurn, bound_of
from baselines.rag.config import RagConfig
from baselines.rag.ranking import NO_VECTORS, PassageIndex, Ranking
from memsys.embedding.contract import Vectors
from memsys.notes.keywords import ask_keywords
from memsys.notes.roles import note_role
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.vocabulary import Json, Retrieval, Turn, Unit


@dataclass(frozen=True, slots=True)
class PreparedTurns:
    """A unit's turns, counted where the config needs it; ``vectors`` (turns, dimension) for ``unit: turn``."""

    turns: Sequence[CountedTurn]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Search input. ``fallback`` says that the keyword reply was unusable and the question was used."""

    text: str
    fallback: bool = False


class RagMemory(BaseMemory):
    """Passages in a flat index. Chunks are embedded together when the stream has ended, turns as they come."""

    def __init__(self, config: RagConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._role = note_role("keywords", config.roles["keywords"])
        self._index = PassageIndex(config, parts.embedder.dimension)
        self._passages: dict[str, Passage] = {}
        self._packer = ChunkPacker(config.chunk_tokens)
        self._packed: list[Passage] = []

    async def prepare(self, unit: Unit) -> PreparedTurns:
        """Write, count and embed the unit's turns."""
        turns = [await self._counted(turn) for turn in unit.turns]
        passages = [turn.passage for turn in turns] if self._config.unit == "turn" else []
        return PreparedTurns(turns, await self._embed(passages))

    async def write(self, unit: Unit, prepared: PreparedTurns) -> None:
        """Store the turns, or pack them."""
        if self._config.unit == "turn":
            self._store([turn.passage for turn in prepared.turns], prepared.vectors)
            return
        for turn in prepared.turns:
            closed = self._packer.add(turn)
            if closed is not None:
                self._packed.append(closed)

    async def consolidate(self) -> None:
        """Close the last chunk and store all that were packed."""
        last = self._packer.close()
        packed = [*self._packed, *([last] if last is not None else [])]
        vectors = await self._embed(packed)
        self._packed = []
        self._store(packed, vectors)

    async def retrieve(self, query: str) -> Retrieval:
        """Find the best passages."""
        spans: dict[str, float] = {}
        with timed(spans, "keywords"):
            searched = await self._searched(query)
        with timed(spans, "embed"):
            vector = NO_VECTORS
            if self._index.uses_vectors:
                vector = (await self._parts.embedder.embed([searched.text]))[0]
        with timed(spans, "search"):
            ranking = self._within_limit(searched.text, vector)
        with timed(spans, "format"):
            context = shown_together(self._ordered(ranking))
        hits = tuple(self._passages[passage_id].hit(score) for passage_id, score in ranking)
        trace: dict[str, Json] = {
            "query": searched.text,
            "fallbacks": ["keywords:question"] if searched.fallback else [],
            "spans": spans,
        }
        if unmatched := self._unmatched(ranking):
            trace["unmatched"] = unmatched
        return Retrieval(hits, context, trace)

    async def _counted(self, turn: Turn) -> CountedTurn:
        passage, bound = passage_of_turn(turn, self._parts.turn_format), bound_of(turn, self._config.chunk_within)
        if not self._config.counts_tokens:
            return CountedTurn(passage, bound, 0, 0)
        line = await self._parts.llm.count_tokens(passage.undated + "\n")
        date = await self._parts.llm.count_tokens(f"[{passage.date_time}]\n") if passage.date_time else 0
        return CountedTurn(replace(passage, tokens=line + date), bound, line, date)

    async def _embed(self, passages: Sequence[Passage]) -> Vectors:
        if not self._index.uses_vectors:
            return NO_VECTORS
        return await self._parts.embedder.embed([self._index.indexed_text(passage) for passage in passages])

    def _store(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        self._index.add(passages, vectors)
        self._passages.update({passage.passage_id: passage for passage in passages})

    async def _searched(self, question: str) -> SearchQuery:
        if self._config.query == "question":
            return SearchQuery(question)
        keywords = await ask_keywords(self._parts.llm, self._role, question)
        return SearchQuery(question, fallback=True) if keywords.fallback else SearchQuery(keywords.text)

    def _within_limit(self, query: str, vector: Vectors) -> Ranking:
        """Return the first ``k`` passages, or those that fit the token budget."""
        if self._config.k is not None:
            return self._index.rank(query, vector, self._config.k)
        room = self._config.budget_tokens or 0
        ranking = self._index.rank(query, vector, len(self._passages))
        for count, (passage_id, _) in enumerate(ranking):
            room -= self._passages[passage_id].tokens
            if room < 0:
                return ranking[:count]
        return ranking

    def _unmatched(self, ranking: Ranking) -> int:
        """Count the passages of score 0 that BM25 fills its list up with."""
        scores = [score for _, score in ranking]
        return scores.count(0.0) if self._config.scorer == "bm25" and any(scores) else 0

    def _ordered(self, ranking: Ranking) -> list[Passage]:
        found = [passage_id for passage_id, _ in ranking]
        if self._config.order == "time":
            position = {passage_id: place for place, passage_id in enumerate(self._passages)}
            found.sort(key=position.__getitem__)
        return [self._passages[passage_id] for passage_id in found]

    def statistics(self) -> Mapping[str, Json]:
        """Count passages, turns and, where counted, tokens."""
        passages = list(self._passages.values())
        facts: dict[str, Json] = {"passages": len(passages), "turns": sum(len(each.turn_ids) for each in passages)}
        if self._config.counts_tokens and passages:
            tokens = [passage.tokens for passage in passages]
            facts |= {"passage_tokens_mean": sum(tokens) / len(tokens), "passage_tokens_max": max(tokens)}
        return facts

    def state(self) -> State:
        """Return passages, vectors and the chunk being packed."""
        return {
            "passages": [passage.state() for passage in self._passages.values()],
            "index": self._index.state(),
            "packed": [passage.state() for passage in self._packed],
            "open": self._packer.open.state() if self._packer.open is not None else None,
            "open_bound": list(self._packer.bound),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        passages = [Passage.from_state(entry) for entry in state["passages"]]
        self._passages = {passage.passage_id: passage for passage in passages}
        self._index.load_state(state["index"], passages)
        self._packed = [Passage.from_state(entry) for entry in state["packed"]]
        self._packer.open = Passage.from_state(state["open"]) if state["open"] is not None else None
        session, record = state["open_bound"]
        self._packer.bound = (session, record)
