"""To which cluster a new note goes (Algorithm 1)."""

from dataclasses import dataclass
from typing import Literal

from memsys.clag.cards import candidate_cards
from memsys.clag.cluster import Partition
from memsys.clag.config import ClagConfig
from memsys.clag.roles import router_for
from memsys.embedding.contract import Vectors
from memsys.llm.contract import LanguageModel, Role
from memsys.notes.note import Note
from memsys.notes.store import NoteStore

#: ``chosen``: by the router, or by geometry where the config says so. ``invalid_nearest``: the choice was not a
#: candidate, the nearest was taken. ``new_tau``: too far from the chosen centroid. ``new_invalid``: the choice was not
#: a candidate.
RouteCause = Literal["chosen", "invalid_nearest", "new_tau", "new_invalid"]


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a note; no cluster means that it founds one. ``malformed``: the router's reply did not parse."""

    cluster_id: str | None
    cause: RouteCause
    malformed: bool = False


@dataclass(frozen=True, slots=True)
class Router:
    """Routes notes by one call each, or by geometry alone (``clustering: cosine | kmeans``)."""

    llm: LanguageModel
    role: Role
    config: ClagConfig
    store: NoteStore
    partition: Partition

    async def route(self, note: Note, vector: Vectors) -> Route:
        """Choose a cluster for a note.

        Args:
            note: the new note.
            vector: embedding of its ``plain`` text, shape (d,).
        """
        if self.config.clustering == "kmeans":
            return Route(self.partition.nearest(vector, 1, "l2")[0], "chosen")
        if self.config.clustering == "cosine":
            return self._within_tau(Route(self.partition.nearest(vector, 1, "cosine")[0], "chosen"), vector)
        return self._within_tau(await self._ask(note, vector), vector)

    async def _ask(self, note: Note, vector: Vectors) -> Route:
        config = self.config
        candidates = self.partition.nearest(vector, config.k_route, config.candidate_metric)
        cards = candidate_cards(
            [self.partition[cluster_id] for cluster_id in candidates],
            self.store,
            config.card_rules,
            show_size=True,
        )
        values = {"content": note.content, "context": note.context, "tags": ", ".join(note.tags), "candidates": cards}
        role = router_for(self.role, candidates) if config.constrain_ids else self.role
        reply = await self.llm.ask(role, values, key=note.note_id)
        choice = "" if reply.value is None else reply.value["choice"].strip()
        malformed = reply.value is None
        if choice in candidates:
            return Route(choice, "chosen")
        if config.invalid_route == "nearest":
            return Route(candidates[0], "invalid_nearest", malformed)
        return Route(None, "new_invalid", malformed)

    def _within_tau(self, route: Route, vector: Vectors) -> Route:
        if route.cluster_id is None:
            return route
        far = self.partition.similarity(vector, route.cluster_id) < self.config.tau
        return Route(None, "new_tau", route.malformed) if far else route
