"""Associative edges between notes (paper, equation 8): stored from the newer to the older."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

LinkRelation = Literal["RELATED", "CONFLICT"]
LinkDirection = Literal["both", "stored"]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between notes, by position; ``created_at`` is the number of the turn that made it, from 0."""

    source: int
    target: int
    strength: float
    relation: LinkRelation
    created_at: int


class LinkGraph:
    """All edges. A pair linked again in the same direction keeps the higher strength; a conflict stays one."""

    def __init__(self) -> None:
        self._links: dict[tuple[int, int], Link] = {}
        self._strengths: dict[int, dict[int, float]] = {}
        self._older: dict[int, dict[int, float]] = {}

    def __len__(self) -> int:
        return len(self._links)

    def add(self, link: Link) -> None:
        """Add an edge.

        Raises:
            ValueError: it leads from a note to itself.
        """
        if link.source == link.target:
            raise ValueError(f"note {link.source} cannot be linked to itself")
        known = self._links.get((link.source, link.target))
        if known is not None:
            relation: LinkRelation = "CONFLICT" if "CONFLICT" in (known.relation, link.relation) else "RELATED"
            strength = max(known.strength, link.strength)
            link = Link(link.source, link.target, strength, relation, known.created_at)
        self._links[(link.source, link.target)] = link
        for one, other in ((link.source, link.target), (link.target, link.source)):
            strengths = self._strengths.setdefault(one, {})
            strengths[other] = max(strengths.get(other, 0.0), link.strength)
        self._older.setdefault(link.source, {})[link.target] = link.strength

    def neighbours(self, position: int, direction: LinkDirection = "both") -> Mapping[int, float]:
        """Return the notes one hop away, with the strength of the strongest edge.

        Args:
            position: of the note.
            direction: ``stored`` follows edges from the newer note to the older alone; ``both`` follows them either
                way.
        """
        return (self._strengths if direction == "both" else self._older).get(position, {})

    def count(self, relation: LinkRelation) -> int:
        """Return the number of edges of one kind."""
        return sum(link.relation == relation for link in self._links.values())

    def linked_notes(self) -> int:
        """Return the number of notes with an edge."""
        return len(self._strengths)

    def state(self) -> list[list[Any]]:
        """Return all edges as JSON values, in order."""
        return [
            [link.source, link.target, link.strength, link.relation, link.created_at] for link in self._links.values()
        ]

    def load_state(self, state: Iterable[Iterable[Any]]) -> None:
        """Replace the content by what :meth:`state` returned."""
        self._links, self._strengths, self._older = {}, {}, {}
        for entry in state:
            self.add(Link(*entry))
