"""The note layer: notes with their dense and sparse indexes. Nothing is deleted, so a note's position stays valid."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.embedding.contract import Vectors
from memsys.errors import DataError
from memsys.index.bm25 import BM25Index
from memsys.index.fusion import fuse
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.note import MemFlyNote
from memsys.memfly.rules import CandidateRules


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored note that a new one is compared with: its position and the cosine of the two contexts."""

    position: int
    cosine: float


class NoteLayer:
    """Notes in the order they were appended, found by the embedding of their context and by their words."""

    def __init__(self, dimension: int, rules: CandidateRules, keywords: KeywordLayer) -> None:
        self._rules = rules
        self._keywords = keywords
        self._notes: list[MemFlyNote] = []
        self.index = VectorIndex(dimension)
        self._words = BM25Index(rules.k1, rules.b, rules.epsilon)

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[MemFlyNote]:
        return iter(self._notes)

    def __getitem__(self, position: int) -> MemFlyNote:
        return self._notes[position]

    def position(self, note_id: str) -> int:
        """Return a note's position, counted from 0."""
        return self.index.position(note_id)

    def append(self, note: MemFlyNote, keywords: Sequence[int], vector: Vectors) -> int:
        """Store a note with its keywords; returns its position.

        Args:
            note: without keywords yet.
            keywords: their numbers.
            vector: embedding of its context, shape (d,).

        Raises:
            DataError: a note of that id is stored already.
        """
        if note.note_id in self.index:
            raise DataError(f"unit id {note.note_id!r} occurs twice in one conversation; turn ids must be unique")
        position = len(self._notes)
        self._keywords.attach(note, position, keywords)
        self._notes.append(note)
        self.index.add([note.note_id], vector[None])
        self._words.add([note.note_id], [self._document(note)])
        return position

    def rewrite(self, position: int, context: str, vector: Vectors) -> None:
        """Give a note another context and bring its index entries up to date, for new keywords too.

        Args:
            position: of the note.
            context: the new text.
            vector: its embedding, shape (d,).
        """
        note = self._notes[position]
        note.context = context
        self.index.replace([note.note_id], vector[None])
        self._words.replace([note.note_id], [self._document(note)])

    def candidates(self, context: str, keywords: Sequence[str], vector: Vectors) -> list[Candidate]:
        """Find the stored notes that a new one is compared with, best first.

        Dense and sparse ranks are fused. A lexical match is a positive BM25 score.

        Args:
            context: of the new note.
            keywords: as first written.
            vector: embedding of ``context``, shape (d,).
        """
        rules = self._rules
        dense = [note_id for note_id, _ in self.index.search(vector, rules.dense)]
        query = " ".join([context, *keywords])
        sparse = [note_id for note_id, score in self._words.search(query, rules.sparse) if score > 0]
        found = sorted({*dense, *sparse}, key=self.position)
        cosines = dict(zip(found, self.index.cosines(found, vector).tolist(), strict=True)) if found else {}
        lexical = set(sparse)
        near = [
            note_id
            for note_id, _ in fuse([dense, sparse], cosines, k=rules.rrf_k)
            if note_id in lexical or round(cosines[note_id], SCORE_DECIMALS) >= rules.min_cosine
        ]
        return [Candidate(self.position(note_id), cosines[note_id]) for note_id in near[: rules.kept]]

    def state(self) -> dict[str, Any]:
        """Return notes and vectors; the words follow from the notes."""
        return {"notes": [note.state() for note in self._notes], "index": self.index.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Replace the content by what :meth:`state` returned; the keyword layer is restored with it afterwards."""
        self._notes = [MemFlyNote.from_state(entry) for entry in state["notes"]]
        self.index.load_state(state["index"])

    def index_words(self) -> None:
        """Fill the sparse index from the notes and their keywords."""
        self._words.load_state({"ids": list(self.index.ids), "texts": [self._document(note) for note in self._notes]})

    def _document(self, note: MemFlyNote) -> str:
        return " ".join([note.context, *(self._keywords.surface(number) for number in note.keywords)])
