"""A note: one memory of A-Mem and CLAG, and the texts under which it is embedded.

Source: CLAG paper, eq. 1; text formats as measured in the official code (dmis-lab/CLAG, WujiangXu/A-mem).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memsys.texts import FILE, ShownTexts
from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Unit

TEXTS = ShownTexts(Path(__file__).with_name(FILE))

#: Which text stands for a note. ``content``: evolution query (E0). ``labelled``: global index (E1). ``plain``: routing
#: vector, k-means initialisation, centroid of a new cluster (E2). ``clustered``: cluster index, and A-Mem's index after
#: consolidation (E3). ``metadata``: A-Mem before July 2025, which left the content out.
TextFormat = Literal["content", "labelled", "plain", "clustered", "metadata"]


@dataclass(slots=True)
class Note:
    """One memory.

    Attributes:
        note_id: the id of the unit it was made from.
        content: the memory's text; never rewritten.
        timestamp: session date and time as the data set writes it.
        keywords: from the analysis; never rewritten.
        context: one sentence; evolution of a later note may rewrite it.
        tags: evolution may rewrite them, the note's own and its neighbours'.
        links: ids of older notes, in the order the model named them.
        turn_ids: the turns it came from.
        evolution_history: for each rewriting, the id of the note that caused it and the context and tags before.
    """

    note_id: str
    content: str
    timestamp: str
    keywords: list[str]
    context: str
    tags: list[str]
    turn_ids: tuple[str, ...]
    links: list[str] = field(default_factory=list)
    evolution_history: list[dict[str, Any]] = field(default_factory=list)

    def text(self, text_format: TextFormat) -> str:
        """Return the text that stands for the note in an embedding space."""
        if text_format == "content":
            return self.content
        if text_format == "labelled":
            keywords, tags = ", ".join(self.keywords), ", ".join(self.tags)
            return TEXTS("labelled", content=self.content, context=self.context, keywords=keywords, tags=tags)
        if text_format == "metadata":
            return TEXTS("metadata", context=self.context, keywords=", ".join(self.keywords))
        head = self.content if text_format == "plain" else f"{self.content} ,"
        return " ".join([head, self.context, *self.keywords, *self.tags])

    def rewrite(self, cause: str, *, context: str, tags: Sequence[str]) -> bool:
        """Set context and tags, keeping the former ones in the history; returns whether anything changed."""
        if context == self.context and list(tags) == self.tags:
            return False
        self.evolution_history.append({"by": cause, "context": self.context, "tags": self.tags})
        self.context, self.tags = context, list(tags)
        return True

    def hit(self, score: float) -> Hit:
        """Return the note as a retrieved memory."""
        return Hit(text=self.content, score=score, turn_ids=self.turn_ids, memory_id=self.note_id)

    def state(self) -> dict[str, Any]:
        """Return the note as JSON values."""
        return {
            "note_id": self.note_id,
            "content": self.content,
            "timestamp": self.timestamp,
            "keywords": list(self.keywords),
            "context": self.context,
            "tags": list(self.tags),
            "turn_ids": list(self.turn_ids),
            "links": list(self.links),
            "evolution_history": [{**entry, "tags": list(entry["tags"])} for entry in self.evolution_history],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Note":
        """Make the note that :meth:`state` described."""
        return cls(
            note_id=state["note_id"],
            content=state["content"],
            timestamp=state["timestamp"],
            keywords=list(state["keywords"]),
            context=state["context"],
            tags=list(state["tags"]),
            turn_ids=tuple(state["turn_ids"]),
            links=list(state["links"]),
            evolution_history=[{**entry, "tags": list(entry["tags"])} for entry in state["evolution_history"]],
        )


def unit_content(unit: Unit, turn_format: TurnFormat) -> str:
    """Write a unit's turns, one per line."""
    return "\n".join(turn_format.render(turn) for turn in unit.turns)


def unit_timestamp(unit: Unit) -> str:
    """Return the date and time of the unit's first turn, verbatim."""
    return unit.turns[0].date_time if unit.turns else ""
