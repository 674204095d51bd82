"""A-Mem as a memory system."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from baselines.amem.config import AmemConfig
from baselines.amem.roles import make_roles
from baselines.amem.sections import query_keywords
from baselines.amem.staged import StagedEvolver, analyse_staged
from memsys.counting import counter_from, counter_state, counts_with
from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.notes.analyse import Analysed, analyse
from memsys.notes.context import format_context
from memsys.notes.evolve import Evolution, Evolver
from memsys.notes.keywords import Keywords, ask_keywords
from memsys.notes.note import Note
from memsys.notes.spans import timed
from memsys.notes.store import NoteStore
from memsys.protocol import BaseMemory, Parts, State
from memsys.vocabulary import Json, Retrieval, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "evolution.yes",
    "evolution.no",
    "links.created",
    "links.dropped",
    "links.repeated",
    "consolidations",
    "fallback.analyse",
    "fallback.evolve",
)


@dataclass(frozen=True, slots=True)
class PreparedNote:
    """An analysed note with the embedding (d,) of its content."""

    note: Note
    content_vector: Vectors
    fallback: bool


class AmemMemory(BaseMemory):
    """Notes that link to and rewrite their nearest ones, in one index.

    A write is: find neighbours, evolve (one call), store, embed what is new or was rewritten. Analysis (one call) and
    the embedding of the content happen in :meth:`prepare`.
    """

    def __init__(self, config: AmemConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._roles = make_roles(config.calls, config.roles)
        self._store = NoteStore()
        self._index = VectorIndex(parts.embedder.dimension)
        self._evolver = self._make_evolver()
        self._evolved = 0
        #: notes whose vector is not that of their present text in the consolidated format
        self._stale: dict[str, None] = {}
        self._counts: Counter[str] = Counter()

    async def prepare(self, unit: Unit) -> PreparedNote:
        """Analyse the unit and embed its content."""
        analysed = await self._analysed(unit)
        vectors = await self._parts.embedder.embed([analysed.note.text("content")])
        return PreparedNote(analysed.note, vectors[0], analysed.fallback)

    async def write(self, unit: Unit, prepared: PreparedNote) -> None:
        """Evolve and store a note; consolidate where it is due."""
        note = prepared.note
        self._counts["fallback.analyse"] += prepared.fallback
        evolution = await self._evolve(prepared)
        await self._keep(note, evolution)
        if evolution.evolved:
            self._evolved += 1
            if self._evolved % self._config.evo_threshold == 0:
                await self._refresh()

    async def consolidate(self) -> None:
        """Consolidate once the stream has ended, where the config says so."""
        if self._config.consolidate_at_end:
            await self._refresh()

    async def retrieve(self, query: str) -> Retrieval:
        """Find notes by keywords (one call) and show them with the notes they link to."""
        spans: dict[str, float] = {}
        with timed(spans, "keywords"):
            keywords = await self._keywords(query)
        with timed(spans, "embed"):
            vectors = await self._parts.embedder.embed([keywords.text])
        with timed(spans, "search"):
            found = self._index.search(vectors[0], self._config.retrieve_k)
        with timed(spans, "format"):
            notes = [self._store[note_id] for note_id, _ in found]
            context = await format_context(self._parts.llm, self._config.context_rules, notes, self._store)
        trace = {
            "keywords": keywords.text,
            "hit_ids": [note_id for note_id, _ in found],
            "stored_notes": len(self._store),
            "fallbacks": [f"keywords:{keywords.fallback}"] if keywords.fallback else [],
            **context.trace,
            "spans": spans,
        }
        hits = tuple(self._store[note_id].hit(score) for note_id, score in found)
        linked = tuple(note.hit(0.0) for note in context.linked)
        return Retrieval(hits, context.text, trace, shown=context.shown, also_shown=linked)

    async def _analysed(self, unit: Unit) -> Analysed:
        llm, turn_format = self._parts.llm, self._parts.turn_format
        if self._config.calls == "staged":
            return await analyse_staged(llm, self._roles, unit, turn_format, self._config.heuristic_rules)
        return await analyse(llm, self._roles["analyse"], unit, turn_format)

    def _make_evolver(self) -> Evolver | StagedEvolver:
        staged = self._config.calls == "staged"
        role = self._roles["decide" if staged else "evolve"]
        evolver = Evolver(self._parts.llm, role, self._config.rules, self._store)
        return StagedEvolver(self._parts.llm, self._roles, evolver, self._store) if staged else evolver

    async def _evolve(self, prepared: PreparedNote) -> Evolution:
        if not self._config.evolution or not (len(self._store) or self._config.evolve_alone):
            return Evolution(evolved=False)
        found = self._index.search(prepared.content_vector, self._config.k_local)
        evolution = await self._evolver.evolve(prepared.note, [self._store[note_id] for note_id, _ in found])
        self._counts.update(evolution.counts)
        return evolution

    async def _keep(self, note: Note, evolution: Evolution) -> None:
        """Store a note; refresh rewritten ones now, or mark them."""
        config = self._config
        rewritten = [self._store[note_id] for note_id in evolution.rewritten]
        at_once = rewritten if config.reembed == "on_change" else []
        texts = [note.text(config.embed_text), *(each.text(config.embed_text) for each in at_once)]
        vectors = await self._parts.embedder.embed(texts)
        self._store.add(note)
        self._index.add([note.note_id], vectors[:1])
        self._index.replace([each.note_id for each in at_once], vectors[1:])
        if config.reembed == "consolidate":
            self._stale.update(dict.fromkeys(evolution.rewritten))
            if config.embed_text != config.consolidated_text:
                self._stale[note.note_id] = None

    async def _refresh(self) -> None:
        """Bring every vector up to date with its note, in the consolidated format; the order stays."""
        if self._config.reembed != "consolidate":
            return
        stale = list(self._stale)
        texts = [self._store[note_id].text(self._config.consolidated_text) for note_id in stale]
        self._index.replace(stale, await self._parts.embedder.embed(texts))
        self._stale = {}
        self._counts["consolidations"] += 1

    async def _keywords(self, question: str) -> Keywords:
        if self._config.search_query == "question":
            return Keywords(question)
        return await ask_keywords(
            self._parts.llm,
            self._roles["keywords"],
            question,
            question_if_empty=self._config.empty_keywords == "question",
            read_text=query_keywords if self._config.calls == "staged" else str.strip,
        )

    def statistics(self) -> Mapping[str, Json]:
        """Count notes, evolutions, links, consolidations and fallbacks."""
        return {
            "notes": len(self._store),
            "evolved_notes": self._evolved,
            "stale_notes": len(self._stale),
            "counts": counts_with(_ALWAYS, self._counts),
        }

    def state(self) -> State:
        """Return notes, vectors and counters."""
        return {
            "notes": self._store.state(),
            "index": self._index.state(),
            "evolved": self._evolved,
            "stale": list(self._stale),
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state["notes"])
        self._index.load_state(state["index"])
        self._evolved = int(state["evolved"])
        self._stale = dict.fromkeys(state["stale"])
        self._counts = counter_from(state["counts"])
