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
from memsys.index.words import words

#: Passage id and score, best first.
Ranking = list[tuple[str, float]]

#: Stands for the vectors of a scorer that uses none.
NO_VECTORS: Vectors = np.zeros((0, 0), dtype=np.float32)


class PassageIndex:
    """Passages by the scorer of the config; keeps only the indexes that it needs."""

    def __init__(self, config: RagConfig, dimension: int) -> None:
        self._config = config
        self._dense = VectorIndex(dimension) if config.scorer != "bm25" else None
        self._bm25 = LexicalIndex(config) if config.scorer != "dense" else None

    @property
    def uses_vectors(self) -> bool:
        """Whether passages and queries must be embedded."""
        return self._dense is not None

    def indexed_text(self, passage: Passage) -> str:
        """Return the text under which a passage is found."""
        return indexed_text(passage, self._config)

    def add(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Append passages; ``vectors`` are those of their indexed texts, or ``NO_VECTORS``."""
        ids = [passage.passage_id for passage in passages]
        if self._dense is not None:
            self._dense.add(ids, vectors)
        if self._bm25 is not None:
            self._bm25.add(passages)

    def rank(self, query: str, vector: Vectors, count: int) -> Ranking:
        """Return the ``count`` best passages; ``vector`` is the query's, shape ``(dimension,)``, or ``NO_VECTORS``."""
        if self._dense is not None and self._bm25 is not None:
            return self._rank_both(self._dense, self._bm25, query, vector)[:count]
        if self._dense is not None:
            return self._dense.search(vector, count)
        return self._bm25.search(query, count) if self._bm25 is not None else []

    def _rank_both(self, dense: VectorIndex, bm25: "LexicalIndex", query: str, vector: Vectors) -> Ranking:
        """Fuse both lists. A passage without any word of the query has no BM25 rank, rather than one by its place."""
        fusion = self._config.fusion_settings
        by_vector = dict(dense.search(vector, fusion.depth))
        by_words = [item for item, score in bm25.search(query, fusion.depth) if score > 0]
        both = sorted({*by_vector, *by_words}, key=dense.position)
        cosines = dict(zip(both, dense.cosines(both, vector).tolist(), strict=True)) if both else {}
        weights = [fusion.dense_weight, fusion.bm25_weight]
        return fuse([list(by_vector), by_words], cosines, weights, k=fusion.k, depth=fusion.depth)

    def state(self) -> dict[str, Any]:
        """Return the snapshot of the vectors; words follow from the passages."""
        return {"dense": self._dense.state()} if self._dense is not None else {}

    def load_state(self, state: dict[str, Any], passages: Sequence[Passage]) -> None:
        """Restore a snapshot of :meth:`state`, given the passages it holds."""
        if self._dense is not None:
            self._dense.load_state(state["dense"])
        if self._bm25 is not None:
            self._bm25 = LexicalIndex(self._config)
            self._bm25.add(passages)


class LexicalIndex:
    """BM25 over passages. Without ``speakers_in_bm25`` it forgets the words of every speaker's label that it meets."""

    def __init__(self, config: RagConfig) -> None:
        self._config = config
        self._passages: list[Passage] = []
        self._labels: frozenset[str] = frozenset()
        self._index = self._empty()

    def add(self, passages: Sequence[Passage]) -> None:
        """Append passages; a label not met before is taken out of those that are there already."""
        self._passages.extend(passages)
        if self._config.speakers_in_bm25 or not self._meets_labels(passages):
            self._fill(passages)
            return
        self._index = self._empty()
        self._fill(self._passages)

    def search(self, query: str, k: int) -> Ranking:
        """Find the ``k`` best passages; where all scores are 0, those that hold a word of the query, else none.

        See :class:`baselines.rag.config.Bm25Settings` for passages of score 0 among others.
        """
        found = self._index.search(query, k)
        scored = [(item, score) for item, score in found if score]
        if not scored:
            return [(item, 0.0) for item in self._index.holding(query)[:k]]
        return found if self._config.bm25_settings.fill else scored

    def _meets_labels(self, passages: Sequence[Passage]) -> bool:
        known = self._labels
        self._labels = known.union(*(words(label) for passage in passages for label in passage.labels))
        return self._labels != known

    def _empty(self) -> BM25Index:
        settings = self._config.bm25_settings
        return BM25Index(settings.k1, settings.b, settings.epsilon)

    def _fill(self, passages: Sequence[Passage]) -> None:
        self._index.add([passage.passage_id for passage in passages], [self._text(passage) for passage in passages])

    def _text(self, passage: Passage) -> str:
        text = indexed_text(passage, self._config)
        if self._config.speakers_in_bm25:
            return text
        return " ".join(word for word in words(text) if word not in self._labels)


def indexed_text(passage: Passage, config: RagConfig) -> str:
    """Return the text under which a passage is found."""
    return passage.shown if config.date_in_index else passage.undated
