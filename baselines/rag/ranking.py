"""The three ways to rank passages: cosine, BM25, and the fusion of both. Ties go to the earlier passage."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from baselines.passages import Passage
from baselines.rag.config import RagConfig
from memsys.embedding.contract import Vectors
from memsys.index.bm25 import BM25Index
from memsys.index.fusion import fuse
from memsys.index.vector import VectorIndex

#: Passage id and score, best first.
Ranking = list[tuple[str, float]]

#: Stands for the vectors of a scorer that uses none.
NO_VECTORS: Vectors = np.zeros((0, 0), dtype=np.float32)


class PassageIndex:
    """Passages by the scorer of the config; keeps only the indexes that it needs."""

    def __init__(self, config: RagConfig, dimension: int) -> None:
        bm25 = config.bm25_settings
        self._config = config
        self._dense = VectorIndex(dimension) if config.scorer != "bm25" else None
        self._bm25 = BM25Index(bm25.k1, bm25.b, bm25.epsilon) if config.scorer != "dense" else None

    @property
    def uses_vectors(self) -> bool:
        """Whether passages and queries must be embedded."""
        return self._dense is not None

    def indexed_text(self, passage: Passage) -> str:
        """Return the text under which a passage is found."""
        return passage.shown if self._config.date_in_index else passage.undated

    def add(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Append passages; ``vectors`` are those of their indexed texts, or ``NO_VECTORS``."""
        ids = [passage.passage_id for passage in passages]
        if self._dense is not None:
            self._dense.add(ids, vectors)
        if self._bm25 is not None:
            self._bm25.add(ids, [self.indexed_text(passage) for passage in passages])

    def rank(self, query: str, vector: Vectors, count: int) -> Ranking:
        """Return the ``count`` best passages; ``vector`` is the query's, shape ``(dimension,)``, or ``NO_VECTORS``."""
        if self._dense is not None and self._bm25 is not None:
            return self._rank_both(self._dense, self._bm25, query, vector)[:count]
        if self._dense is not None:
            return self._dense.search(vector, count)
        return self._bm25.search(query, count) if self._bm25 is not None else []

    def _rank_both(self, dense: VectorIndex, bm25: BM25Index, query: str, vector: Vectors) -> Ranking:
        """Fuse both lists. A passage without any word of the query has no BM25 rank, rather than one by its place."""
        fusion = self._config.fusion_settings
        by_vector = dict(dense.search(vector, fusion.depth))
        by_words = [item for item, score in bm25.search(query, fusion.depth) if score > 0]
        both = sorted({*by_vector, *by_words}, key=dense.position)
        cosines = dict(zip(both, dense.cosines(both, vector).tolist(), strict=True)) if both else {}
        weights = [fusion.dense_weight, fusion.bm25_weight]
        return fuse([list(by_vector), by_words], cosines, weights, k=fusion.k, depth=fusion.depth)

    def state(self) -> dict[str, Any]:
        """Snapshot of the vectors; words follow from the passages."""
        return {"dense": self._dense.state()} if self._dense is not None else {}

    def load_state(self, state: dict[str, Any], passages: Sequence[Passage]) -> None:
        """Restore a snapshot of :meth:`state`, given the passages it holds."""
        if self._dense is not None:
            self._dense.load_state(state["dense"])
        if self._bm25 is not None:
            texts = [self.indexed_text(passage) for passage in passages]
            self._bm25.load_state({"ids": [passage.passage_id for passage in passages], "texts": texts})
