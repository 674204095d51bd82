"""Evolution with one call for the links and one for each neighbour (paper, eq. 3 and 4)."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.notes.evolve import Evolution, Evolver, neighbour_line
from memsys.notes.note import Note


@dataclass(frozen=True, slots=True)
class NeighbourwiseEvolver:
    """Asks per neighbour, and applies all replies together as one reply of the role ``evolve``.

    All calls see the notes as they were before; a malformed reply links, or rewrites, nothing. Without neighbours
    nothing is asked.

    Attributes:
        llm: the backbone.
        link: the role ``link``, asked once: eq. 3.
        rewrite: the role ``rewrite``, asked for each neighbour: eq. 4.
        joint: applies replies; gives memory indices.
    """

    llm: LanguageModel
    link: Role
    rewrite: Role
    joint: Evolver

    async def evolve(self, note: Note, neighbours: Sequence[Note]) -> Evolution:
        """Ask the model and change ``note`` and ``neighbours`` in place.

        Args:
            note: the new note, not stored yet.
            neighbours: stored notes, most similar first.
        """
        if not neighbours:
            return Evolution(evolved=False, counts=Counter({"evolution.no": 1}))
        linked, *rewritten = await asyncio.gather(
            self._ask_links(note, neighbours), *(self._ask_update(note, neighbours, n) for n in range(len(neighbours)))
        )
        evolution = self.joint.apply(_joined(linked, rewritten, note, neighbours), note, neighbours)
        malformed = sum(reply.value is None for reply in (linked, *rewritten))
        return replace(evolution, counts=+(evolution.counts + Counter({"fallback.evolve": malformed})))

    async def _ask_links(self, note: Note, neighbours: Sequence[Note]) -> Reply:
        values = {**_shown(note), "neighbours": self._lines(neighbours), "neighbour_count": str(len(neighbours))}
        return await self.llm.ask(self.link, values, key=note.note_id)

    async def _ask_update(self, note: Note, neighbours: Sequence[Note], number: int) -> Reply:
        stored = neighbours[number]
        others = [*neighbours[:number], *neighbours[number + 1 :]]
        values = {
            **_shown(note),
            "others": self._lines(others) or self.joint.rules.labels.none,
            "stored": self._lines([stored]),
        }
        return await self.llm.ask(self.rewrite, values, key=f"{note.note_id}:{stored.note_id}")

    def _lines(self, notes: Sequence[Note]) -> str:
        return "\n".join(neighbour_line(each, self.joint.store, self.joint.rules.labels) for each in notes)


def _shown(note: Note) -> dict[str, str]:
    """Show the new note with all that eq. 1 makes it of, as neighbours are shown: what leads to what needs times."""
    return {
        "time": note.timestamp,
        "context": note.context,
        "content": note.content,
        "keywords": str(note.keywords),
        "tags": str(note.tags),
    }


def _joined(linked: Reply, rewritten: Sequence[Reply], note: Note, neighbours: Sequence[Note]) -> Mapping[str, Any]:
    """Write the replies as one of the role ``evolve``; what is not to change has its present value."""
    links = [] if linked.value is None else linked.value["suggested_connections"]
    values = [None if reply.value is None or not reply.value["update"] else reply.value for reply in rewritten]
    pairs = list(zip(neighbours, values, strict=True))
    changed = any(value is not None for value in values)
    return {
        "should_evolve": bool(links) or changed,
        "actions": [*(["strengthen"] if links else []), *(["update_neighbor"] if changed else [])],
        "suggested_connections": links,
        "tags_to_update": note.tags,
        "new_context_neighborhood": [each.context if value is None else value["context"] for each, value in pairs],
        "new_tags_neighborhood": [each.tags if value is None else value["tags"] for each, value in pairs],
    }
