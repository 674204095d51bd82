"""The three ways from a question to notes, each a ranked list (paper, 3.4.1), and their fusion.

The paper gives the sets and leaves the ranking inside a pathway open. Here: topics by the cosine of note and topic
heading; keywords by the summed best cosine per keyword of the question; links by the anchor's fused score times the
link's strength.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.fusion import reciprocal_rank_scores
from memsys.index.vector import SCORE_DECIMALS
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.links import LinkGraph
from memsys.memfly.rules import Ablation, MemFlyRetrievalRules
from memsys.memfly.store import NoteLayer
from memsys.memfly.topics import Topics

#: Fused scores of neighbouring ranks differ by more than 1e-5, products with strengths by less: compare finely.
_FUSED_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Signals:
    """A question as the pathways see it: embeddings of the question (d,), its topic (d,), its keywords (m, d)."""

    question: Vectors
    topic: Vectors
    keywords: Vectors


@dataclass(frozen=True, slots=True)
class Pathway:
    """The best notes of a pathway, by position, best first, and how many notes it reached in all."""

    ranked: tuple[int, ...] = ()
    reached: int = 0


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Notes found for one query.

    Attributes:
        ranked: positions and fused scores, best first; filled-in notes have the score 0.
        pathways: ``topic``, ``keyword`` and ``neighbour``.
        filled: how many notes at the end were taken by similarity to the question alone.
    """

    ranked: tuple[tuple[int, float], ...]
    pathways: Mapping[str, Pathway]
    filled: int = 0


@dataclass(frozen=True, slots=True)
class TriPathway:
    """Searches the graph; changes nothing in it."""

    rules: MemFlyRetrievalRules
    ablate: Ablation
    notes: NoteLayer
    keywords: KeywordLayer
    links: LinkGraph

    def search(self, signals: Signals, topics: Topics) -> CandidatePool:
        """Find notes by all pathways, fuse them, and fill up what is missing."""
        near = Nearness(self.notes, signals.question)
        by_topic = Pathway() if self.ablate.topic else self.by_topic(signals.topic, topics)
        by_keyword = Pathway() if self.ablate.keyword else self.by_keyword(signals.keywords)
        anchors = self._fuse([by_topic, by_keyword], near)[: self.rules.expand_from]
        by_link = Pathway() if self.ablate.neighbor else self.by_link(anchors)
        fused = self._fuse([by_topic, by_keyword, by_link], near)[: self.rules.k_final]
        filling = self._filling({position for position, _ in fused}, signals.question)
        return CandidatePool(
            ranked=(*fused, *((position, 0.0) for position in filling)),
            pathways={"topic": by_topic, "keyword": by_keyword, "neighbour": by_link},
            filled=len(filling),
        )

    def by_topic(self, topic: Vectors, topics: Topics) -> Pathway:
        """Rank the notes that hold a keyword of the nearest topics (equations 12 and 13).

        By the cosine of note and topic heading; ties go to the note that touches more of these topics, then to the
        older.

        Args:
            topic: embedding of the heading, shape (d,).
            topics: the partition to search.
        """
        touched = np.zeros(len(self.notes), dtype=np.int64)
        for number in topics.nearest(topic, self.rules.k_topic):
            held = [self.keywords.notes(keyword) for keyword in topics.members[number].tolist()]
            touched[np.unique(np.concatenate(held))] += 1
        rows = np.flatnonzero(touched)
        found = self.notes.index.search(topic, self.rules.list_cap, among=rows)
        scored = [(self.notes.position(note_id), cosine) for note_id, cosine in found]
        scored.sort(key=lambda pair: (-round(pair[1], SCORE_DECIMALS), -touched[pair[0]], pair[0]))
        return Pathway(tuple(position for position, _ in scored), len(rows))

    def by_keyword(self, wanted: Vectors) -> Pathway:
        """Rank the notes that hold a keyword near one of the question's (equations 14 and 15).

        Per keyword of the question a note scores the best cosine among its matched keywords; the sum ranks it.

        Args:
            wanted: embeddings of the question's keywords, shape (m, d).
        """
        matched: dict[str, None] = {}
        for vector in wanted:
            matched |= dict.fromkeys(key for key, _ in self.keywords.index.search(vector, self.rules.k_keyword))
        if not matched:
            return Pathway()
        keys = list(matched)
        cosines = np.stack([self.keywords.index.cosines(keys, vector) for vector in wanted], axis=1)
        best = np.full((len(self.notes), len(wanted)), -np.inf)
        for key, row in zip(keys, cosines, strict=True):
            holders = self.keywords.notes(self.keywords.index.position(key))
            best[holders] = np.maximum(best[holders], row)
        rows = np.flatnonzero(best[:, 0] > -np.inf)
        totals = np.round(best[rows].sum(axis=1), SCORE_DECIMALS)
        order = np.argsort(-totals, kind="stable")[: self.rules.list_cap]
        return Pathway(tuple(rows[order].tolist()), len(rows))

    def by_link(self, anchors: Sequence[tuple[int, float]]) -> Pathway:
        """Rank the notes one hop from the anchors (equation 17).

        Args:
            anchors: positions and fused scores.
        """
        scores: dict[int, float] = {}
        for anchor, score in anchors:
            for other, strength in self.links.neighbours(anchor, self.rules.link_direction).items():
                scores[other] = max(scores.get(other, 0.0), score * strength)
        positions = np.array(sorted(scores), dtype=np.int64)
        values = np.array([scores[position] for position in positions.tolist()])
        order = np.argsort(-np.round(values, _FUSED_DECIMALS), kind="stable")[: self.rules.list_cap]
        return Pathway(tuple(positions[order].tolist()), len(positions))

    def _fuse(self, pathways: Sequence[Pathway], near: "Nearness") -> list[tuple[int, float]]:
        rankings = [pathway.ranked for pathway in pathways]
        return fuse_positions(rankings, near, k=self.rules.rrf_k, depth=self.rules.list_cap)

    def _filling(self, pool: set[int], question: Vectors) -> list[int]:
        missing = self.rules.k_final - len(pool)
        if not self.rules.dense_fill or missing <= 0:
            return []
        near = self.notes.index.search(question, self.rules.k_final)
        positions = (self.notes.position(note_id) for note_id, _ in near)
        return [position for position in positions if position not in pool][:missing]


class Nearness:
    """Cosines of notes with the question, which break ties; each computed once."""

    def __init__(self, notes: NoteLayer, question: Vectors) -> None:
        self._notes, self._question = notes, question
        self._known: dict[int, float] = {}

    def of(self, positions: Sequence[int]) -> NDArray[np.float64]:
        """Return the cosines of notes, in the order of ``positions``."""
        new = [position for position in positions if position not in self._known]
        if new:
            ids = [self._notes[position].note_id for position in new]
            cosines = self._notes.index.cosines(ids, self._question)
            self._known.update(zip(new, cosines.tolist(), strict=True))
        return np.array([self._known[position] for position in positions])


def fuse_positions(rankings: Sequence[Sequence[int]], near: Nearness, *, k: int, depth: int) -> list[tuple[int, float]]:
    """Fuse rankings of positions by reciprocal rank; ties go to the note nearest the question, then to the newer."""
    fused = reciprocal_rank_scores(rankings, k=k, depth=depth)
    positions, scores = np.array(list(fused), dtype=np.int64), np.array(list(fused.values()))
    cosines = np.round(near.of(positions.tolist()), SCORE_DECIMALS)
    order = np.lexsort((-positions, -cosines, -np.round(scores, _FUSED_DECIMALS)))
    return [(int(positions[row]), float(scores[row])) for row in order]
