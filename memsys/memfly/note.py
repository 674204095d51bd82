"""A note: one denoised memory over the raw turns it came from (paper, 3.2, layer 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Unit


@dataclass(frozen=True, slots=True)
class RawItem:
    """One turn, verbatim: its text as the run writes turns, and the session's date and time."""

    turn_id: str
    text: str
    timestamp: str


@dataclass(slots=True)
class MemFlyNote:
    """One memory.

    Attributes:
        note_id: id of the unit that founded it.
        raw: the turns it holds, in order of arrival; merging adds to them.
        context: the denoised text; merging and conflicts rewrite it.
        keywords: numbers of its keywords, in the order it got them, none twice.
        merged: how many notes were merged into it.
        told_by: ids of further turns whose facts a clause of the context tells (conflicts), if the config names them.
    """

    note_id: str
    raw: list[RawItem]
    context: str
    keywords: list[int]
    merged: int = 0
    told_by: list[str] = field(default_factory=list)

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """The turns whose content the note holds."""
        return tuple(dict.fromkeys([*(item.turn_id for item in self.raw), *self.told_by]))

    @property
    def timestamps(self) -> list[str]:
        """The distinct dates of its turns, in order of arrival."""
        return [stamp for stamp in dict.fromkeys(item.timestamp for item in self.raw) if stamp]

    def lines(self) -> list[str]:
        """Write the note as evidence: dates and context, then the raw turns, dated where there are several dates."""
        stamps = self.timestamps
        head = f"[{'; '.join(stamps)}] {self.context}" if stamps else self.context
        several = len(stamps) > 1
        raw = [f"({item.timestamp}) {item.text}" if several else item.text for item in self.raw]
        return [head, *(f"- {text}" for text in raw if text != self.context)]

    def hit(self, score: float) -> Hit:
        """Return the note as a retrieved memory; its text is context and raw turns, without dates."""
        raw = [item.text for item in self.raw if item.text != self.context]
        text = "\n".join([self.context, *raw])
        return Hit(text=text, score=score, turn_ids=self.turn_ids, memory_id=self.note_id)

    def state(self) -> dict[str, Any]:
        """Return the note as JSON values."""
        return {
            "note_id": self.note_id,
            "raw": [asdict(item) for item in self.raw],
            "context": self.context,
            "keywords": list(self.keywords),
            "merged": self.merged,
            "told_by": list(self.told_by),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "MemFlyNote":
        """Make the note that :meth:`state` described."""
        return cls(
            note_id=state["note_id"],
            raw=[RawItem(**item) for item in state["raw"]],
            context=state["context"],
            keywords=list(state["keywords"]),
            merged=state["merged"],
            told_by=list(state["told_by"]),
        )


def raw_items(unit: Unit, turn_format: TurnFormat) -> list[RawItem]:
    """Return a unit's turns as raw items."""
    return [RawItem(turn.turn_id, turn_format.render(turn), turn.date_time) for turn in unit.turns]


def raw_text(items: Sequence[RawItem]) -> str:
    """Write raw turns, one per line."""
    return "\n".join(item.text for item in items)
