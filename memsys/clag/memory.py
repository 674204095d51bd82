"""CLAG as a memory system: the write path and what it keeps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memsys.clag.cluster import Partition
from memsys.clag.config import ClagConfig
from memsys.clag.counts import write_statistics
from memsys.clag.maintenance import ClusterMaintainer
from memsys.clag.neighbourwise import NeighbourwiseEvolver
from memsys.clag.retrieval import TwoStageRetrieval
from memsys.clag.roles import make_roles
from memsys.clag.routing import Route, Router
from memsys.counting import counter_from, counter_state
from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.notes.analyse import analyse
from memsys.notes.evolve import Evolution, Evolver
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from memsys.protocol import BaseMemory, Parts, State
from memsys.vocabulary import Json, Retrieval, Unit


@dataclass(frozen=True, slots=True)
class PreparedClagNote:
    """An analysed note with the embeddings (d,) of its ``plain`` text and of what its neighbours are near to."""

    note: Note
    neighbour_query: Vectors
    plain_vector: Vectors
    fallback: bool


class ClagMemory(BaseMemory):
    """Notes in clusters that the backbone chooses.

    A write is: route (one call, once clusters exist), evolve among the cluster's nearest notes (one call, or one for
    the links and one per neighbour), embed what is new or was rewritten (one batch), store. Analysis and the
    embeddings it allows happen in :meth:`prepare`.
    """

    def __init__(self, config: ClagConfig, parts: Parts) -> None:
        roles = make_roles(config.roles)
        self._config = config
        self._parts = parts
        self._roles = roles
        self._store = NoteStore()
        self._partition = Partition()
        self._everything = VectorIndex(parts.embedder.dimension)
        self._evolved = 0
        self._router = Router(parts.llm, roles.router, config, self._store, self._partition)
        joint = Evolver(parts.llm, roles.evolve, config.evolution, self._store)
        by_neighbour = NeighbourwiseEvolver(parts.llm, roles.link, roles.rewrite, joint)
        self._evolver: Evolver | NeighbourwiseEvolver = joint if config.evolution_calls == "joint" else by_neighbour
        self._upkeep = ClusterMaintainer(config, parts.llm, parts.embedder, roles.profile, self._store, self._partition)
        self._retrieval = TwoStageRetrieval(
            config, parts.llm, parts.embedder, roles, self._store, self._partition, self._everything
        )

    async def prepare(self, unit: Unit) -> PreparedClagNote:
        """Analyse the unit and embed what does not depend on other notes."""
        analysed = await analyse(self._parts.llm, self._roles.analyse, unit, self._parts.turn_format)
        note = analysed.note
        texts = [note.text("plain"), *([note.text("content")] if self._config.neighbour_query == "content" else [])]
        vectors = await self._parts.embedder.embed(texts)
        return PreparedClagNote(note, vectors[-1], vectors[0], analysed.fallback)

    async def write(self, unit: Unit, prepared: PreparedClagNote) -> None:
        """Route, evolve and store a note; consolidate or initialise where it is due."""
        note = prepared.note
        self._counts["fallback.analyse"] += prepared.fallback
        route = await self._router.route(note, prepared.plain_vector) if self._partition else None
        evolution = await self._evolve(prepared, route)
        described = await self._keep(note, route, evolution.rewritten)
        self._evolved += evolution.evolved
        if evolution.evolved and self._evolved % self._config.consolidate_every == 0:
            await self._upkeep.consolidate()
        elif self._config.profile_update == "on_evolution":
            await self._upkeep.renew_profiles(evolution.rewritten, described)
        if not self._partition and len(self._store) >= self._config.buffer_size:
            await self._upkeep.initialise()

    async def consolidate(self) -> None:
        """Consolidate the clusters once the stream has ended."""
        if self._config.consolidate_at_end:
            await self._upkeep.consolidate()

    async def retrieve(self, query: str) -> Retrieval:
        """Find notes by keywords, inside the clusters that the selector picks."""
        return await self._retrieval.retrieve(query)

    @property
    def _counts(self) -> Counter[str]:
        return self._upkeep.counts

    async def _evolve(self, prepared: PreparedClagNote, route: Route | None) -> Evolution:
        if route is not None:
            self._counts[f"route.{route.cause}"] += 1
            self._counts["fallback.router"] += route.malformed
        scope = self._evolution_scope(route)
        if scope is None:
            return Evolution(evolved=False)
        found = scope.search(prepared.neighbour_query, self._config.k_local)
        neighbours = [self._store[note_id] for note_id, _ in found]
        evolution = await self._evolver.evolve(prepared.note, neighbours)
        self._counts.update(evolution.counts)
        return evolution

    def _evolution_scope(self, route: Route | None) -> VectorIndex | None:
        """Return the notes that a note evolves among; ``None`` for a note that does not evolve."""
        config = self._config
        if route is None:
            return None if config.cold_start == "buffer" else self._everything
        if config.evolution_scope == "global":
            return self._everything
        if route.cluster_id is None:
            return None if config.new_cluster_evolution == "none" else self._everything
        return self._partition[route.cluster_id].index

    async def _keep(self, note: Note, route: Route | None, rewritten: Sequence[str]) -> Sequence[str]:
        """Store a note and refresh rewritten ones, with one batch of embeddings; return the clusters described."""
        changed = [self._store[note_id] for note_id in rewritten]
        labelled = [note, *(changed if self._config.reembed_global == "on_change" else ())]
        clustered = [note, *(changed if self._config.reembed_clusters == "on_change" else ())] if route else []
        texts = [each.text("labelled") for each in labelled] + [each.text("clustered") for each in clustered]
        if route and route.cluster_id is None:
            texts.append(note.text("plain"))
        vectors = await self._parts.embedder.embed(texts)
        self._store.add(note)
        self._everything.add([note.note_id], vectors[:1])
        if labelled[1:]:
            self._everything.replace([each.note_id for each in labelled[1:]], vectors[1 : len(labelled)])
        if route is None:
            return ()
        described = await self._place(note, route, clustered[1:], vectors[len(labelled) :])
        if self._config.reembed_clusters == "consolidate":
            self._upkeep.stale.update(dict.fromkeys(rewritten))
        return described

    async def _place(self, note: Note, route: Route, changed: Sequence[Note], vectors: Vectors) -> Sequence[str]:
        """Put a note into its cluster; rows of ``vectors``: the note, the changed ones, a new cluster's centroid."""
        self._upkeep.replace_clustered([each.note_id for each in changed], vectors[1 : len(changed) + 1])
        if route.cluster_id is None:
            self._upkeep.create_cluster(note, vectors[:1], vectors[-1])
            return ()
        return await self._upkeep.join(note, route.cluster_id, vectors[:1])

    def statistics(self) -> Mapping[str, Json]:
        """Count clusters, sizes, routes, evolutions, links, consolidations, splits and fallbacks."""
        return write_statistics(self._store, self._partition, self._counts, self._evolved)

    def state(self) -> State:
        """Return notes, clusters, vectors and counters."""
        return {
            "notes": self._store.state(),
            "clusters": self._partition.state(),
            "everything": self._everything.state(),
            "evolved": self._evolved,
            "counts": counter_state(self._counts),
            "stale": list(self._upkeep.stale),
            "rounds": self._upkeep.rounds,
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._store.load_state(state["notes"])
        self._partition.load_state(state["clusters"])
        self._everything.load_state(state["everything"])
        self._evolved = int(state["evolved"])
        self._upkeep.counts = counter_from(state["counts"])
        self._upkeep.stale = dict.fromkeys(state["stale"])
        self._upkeep.rounds = int(state["rounds"])
