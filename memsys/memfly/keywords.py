"""The keyword layer: symbolic anchors with embeddings, which notes hold them, and which occur together (3.2)."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.memfly.note import MemFlyNote
from memsys.memfly.phrases import digits_differ, normalised


class KeywordLayer:
    """Keywords in the order they were met, numbered from 0.

    The co-occurrence weight of two keywords is the number of notes that hold both, whatever the order of writes and
    merges; a note's pairs count once.

    Args:
        dimension: of the embeddings.
        reuse_cosine: cosine from which a phrase counts as a stored keyword that is written otherwise.
        reuse_checked: nearest stored keywords that are compared with such a phrase, in order; those whose numbers
            differ are passed over.
    """

    def __init__(self, dimension: int, reuse_cosine: float, reuse_checked: int) -> None:
        self._reuse_cosine, self._reuse_checked = reuse_cosine, reuse_checked
        self.index = VectorIndex(dimension)
        self._surfaces: list[str] = []
        self._number: dict[str, int] = {}
        self._notes: list[array[int]] = []
        self._together: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._surfaces)

    def surface(self, number: int) -> str:
        """Return a keyword as it was first written."""
        return self._surfaces[number]

    def vectors(self, numbers: Sequence[int]) -> Vectors:
        """Return the keywords' embeddings, shape ``(len(numbers), d)``."""
        ids = self.index.ids  # a copy of all, so asked for once
        return self.index.vectors([ids[number] for number in numbers])

    def notes(self, number: int) -> NDArray[np.int64]:
        """Return the positions of the notes that hold a keyword; valid until the next write."""
        return np.frombuffer(self._notes[number], dtype=np.int64)

    def link(self, surfaces: Sequence[str], vectors: Vectors) -> list[int]:
        """Match phrases with stored keywords, and store those that are new.

        A phrase is a stored keyword when their canonical keys agree, or when the nearest one's cosine reaches the
        bound and both do not hold different numbers.

        Args:
            surfaces: phrases whose canonical keys are not empty.
            vectors: their embeddings, shape ``(len(surfaces), d)``.

        Returns:
            Keyword numbers in the order of the phrases, none twice.
        """
        found: dict[int, None] = {}
        for surface, vector in zip(surfaces, vectors, strict=True):
            key = normalised(surface)
            number = self._number.get(key)
            if number is None:
                number = self._alike(key, vector)
            found[self._new(surface, key, vector) if number is None else number] = None
        return list(found)

    def attach(self, note: MemFlyNote, position: int, numbers: Sequence[int]) -> list[int]:
        """Give a note keywords; returns those that it did not have before. Counts the pairs that are new to it."""
        fresh = [number for number in dict.fromkeys(numbers) if number not in note.keywords]
        for number in fresh:
            for other in note.keywords:
                pair = (min(number, other), max(number, other))
                self._together[pair] = self._together.get(pair, 0) + 1
            note.keywords.append(number)
            self._notes[number].append(position)
        return fresh

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the co-occurrence graph: pairs ``(m, 2)``, the lower number first, sorted, and weights ``(m,)``."""
        ordered = sorted(self._together)
        weights = np.array([self._together[pair] for pair in ordered], dtype=np.float64)
        return np.array(ordered, dtype=np.int64).reshape(len(ordered), 2), weights

    def together(self, one: int, other: int) -> int:
        """Return in how many notes two keywords occur together."""
        return self._together.get((min(one, other), max(one, other)), 0)

    @property
    def edges(self) -> int:
        """Number of pairs that occur together."""
        return len(self._together)

    def state(self) -> dict[str, Any]:
        """Return surfaces and vectors; what notes hold which keyword follows from the notes."""
        return {"surfaces": list(self._surfaces), "index": self.index.state()}

    def load_state(self, state: Mapping[str, Any], notes: Sequence[MemFlyNote]) -> None:
        """Restore a snapshot.

        Args:
            state: from :meth:`state`.
            notes: all notes, in order, with their keywords.
        """
        self.index.load_state(state["index"])
        self._surfaces = list(state["surfaces"])
        self._number = {key: number for number, key in enumerate(self.index.ids)}
        self._notes = [array("q") for _ in self._surfaces]
        self._together = {}
        for position, note in enumerate(notes):
            held, note.keywords = note.keywords, []
            self.attach(note, position, held)

    def _alike(self, key: str, vector: Vectors) -> int | None:
        for stored, cosine in self.index.search(vector, self._reuse_checked, least=self._reuse_cosine):
            if round(cosine, SCORE_DECIMALS) < self._reuse_cosine:
                return None
            if not digits_differ(key, stored):
                return self._number[stored]
        return None

    def _new(self, surface: str, key: str, vector: Vectors) -> int:
        number = len(self._surfaces)
        self.index.add([key], vector[None])
        self._surfaces.append(surface)
        self._number[key] = number
        self._notes.append(array("q"))
        return number
