"""Pruned retrieval as a memory system: found by the whole passage, shown without what the classifier leaves out."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from baselines.passages import shown_together
from baselines.pruned import compressor
from baselines.pruned.config import PrunedRagConfig
from baselines.rag.memory import RagMemory
from memsys.protocol import Parts, State
from memsys.vocabulary import Json, Retrieval


class PrunedRagMemory(RagMemory):
    """Plain retrieval whose passages are pruned once, when the stream has ended: the classifier sees no question."""

    def __init__(self, config: PrunedRagConfig, parts: Parts) -> None:
        super().__init__(config, parts)
        self._compressor = compressor.load(config.compressor_settings)
        self._pruned: dict[str, str] = {}

    async def consolidate(self) -> None:
        """Store the last passages and prune all."""
        await super().consolidate()
        for passage_id, passage in self._passages.items():
            self._pruned[passage_id] = await asyncio.to_thread(self._compressor.prune, passage.undated)

    async def retrieve(self, query: str) -> Retrieval:
        """Find the best passages and show what is left of them."""
        found = await super().retrieve(query)
        hits = tuple(replace(hit, text=self._pruned[hit.memory_id]) for hit in found.hits)
        ordered = self._ordered([(hit.memory_id, hit.score) for hit in hits])
        shown = [replace(passage, lines=(self._pruned[passage.passage_id],)) for passage in ordered]
        return Retrieval(hits, shown_together(shown), found.trace)

    def statistics(self) -> Mapping[str, Json]:
        """Count as plain retrieval does, and the share of characters that is left."""
        whole = sum(len(passage.undated) for passage in self._passages.values())
        left = sum(map(len, self._pruned.values()))
        return {**super().statistics(), "kept_characters": left / whole if whole else None}

    def state(self) -> State:
        """Return the state of plain retrieval and the pruned texts."""
        return {**super().state(), "pruned": dict(self._pruned)}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        super().load_state(state)
        self._pruned = dict(state["pruned"])
