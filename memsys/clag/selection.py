"""Stage 1 of retrieval: which clusters are searched (paper, section 3.4)."""

from dataclasses import dataclass
from typing import Literal

from memsys.clag.cards import candidate_cards
from memsys.clag.cluster import Partition
from memsys.clag.config import ClagConfig
from memsys.clag.roles import selector_for
from memsys.embedding.contract import Vectors
from memsys.llm.contract import LanguageModel, Role
from memsys.notes.store import NoteStore
from memsys.seeding import question_key

#: Why all notes are searched instead of clusters.
GlobalReason = Literal[
    "configured", "no_clusters", "no_tags", "selector_malformed", "selector_empty", "selector_off_list", "no_hits"
]


@dataclass(frozen=True, slots=True)
class SelectionQuery:
    """Input of Stage 1: the question's text, its tags, and the embedding ``(d,)`` of both together."""

    text: str
    tags: tuple[str, ...]
    vector: Vectors


@dataclass(frozen=True, slots=True)
class ClusterSelection:
    """The candidates shown, the clusters picked (no id twice), and why none was."""

    candidates: tuple[str, ...]
    selected: tuple[str, ...]
    reason: GlobalReason | None = None


@dataclass(frozen=True, slots=True)
class Selector:
    """Picks clusters by one call."""

    llm: LanguageModel
    role: Role
    config: ClagConfig
    store: NoteStore
    partition: Partition

    async def select(self, query: SelectionQuery) -> ClusterSelection:
        """Pick between none and ``top_n`` of the nearest clusters."""
        if not self.partition:
            return ClusterSelection((), (), "no_clusters")
        if not query.tags:
            asked = (await self._ask(query)).candidates if self.config.selector_without_tags else ()
            return ClusterSelection(asked, (), "no_tags")
        if self.config.select == "force_first_three":
            return ClusterSelection((), tuple(sorted(cluster.cluster_id for cluster in self.partition.clusters)[:3]))
        return await self._ask(query)

    async def _ask(self, query: SelectionQuery) -> ClusterSelection:
        config = self.config
        candidates = tuple(self.partition.nearest(query.vector, config.k_stage1, config.candidate_metric))
        cards = candidate_cards(
            [self.partition[cluster_id] for cluster_id in candidates],
            self.store,
            config.card_rules,
            show_size=False,
        )
        limit = min(config.top_n, len(candidates)) if config.constrain_ids else config.top_n
        values = {"query": query.text, "query_tags": ", ".join(query.tags), "candidates": cards, "top_n": str(limit)}
        role = selector_for(self.role, candidates, limit) if config.constrain_ids else self.role
        reply = await self.llm.ask(role, values, key=question_key(query.text))
        if reply.value is None:
            return ClusterSelection(candidates, (), "selector_malformed")
        given = [cluster_id for cluster_id in reply.value["selected_clusters"] if isinstance(cluster_id, str)]
        named = [role.reading.text(cluster_id) for cluster_id in given]
        valid = [cluster_id for cluster_id in dict.fromkeys(named) if cluster_id in candidates][: config.top_n]
        if valid:
            return ClusterSelection(candidates, tuple(valid))
        return ClusterSelection(candidates, (), "selector_off_list" if named else "selector_empty")
