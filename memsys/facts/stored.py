"""A stored fact."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memsys.facts.batches import batch_date, batch_turn_ids
from memsys.vocabulary import Hit, Json, Unit

#: Dates of a rewritten memory: the new batch's, the old ones, or both.
UpdateTimestamp = Literal["overwrite", "keep_old", "keep_both"]


@dataclass(slots=True)
class StoredFact:
    """A stored fact.

    Attributes:
        memory_id: ``<owner>#<number>``.
        text: as extracted, or as last rewritten.
        created: date of the batch that it was first written from.
        dates: dates shown to the reader.
        turn_ids: all turns of every batch that it was written or rewritten from.
        merges: how often it was rewritten.
    """

    memory_id: str
    text: str
    created: str
    dates: list[str]
    turn_ids: tuple[str, ...]
    merges: int = 0

    @classmethod
    def of(cls, memory_id: str, text: str, unit: Unit, turn_ids: tuple[str, ...] | None = None) -> "StoredFact":
        """Make the memory of a fact of a batch; ``turn_ids``: the turns that it came from, if not that batch's."""
        date = batch_date(unit)
        return cls(memory_id, text, date, [date], batch_turn_ids(unit) if turn_ids is None else turn_ids)

    @property
    def line(self) -> str:
        """The memory as the reader sees it."""
        dates = ", ".join(date for date in self.dates if date)
        return f"{dates}: {self.text}" if dates else self.text

    def hit(self, score: float) -> Hit:
        """Return the memory as a retrieved one."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.memory_id)

    def rewrite(self, text: str, unit: Unit, timestamp: UpdateTimestamp) -> None:
        """Set the text that a fact of a batch led to, and add that batch's turns to its own."""
        date = batch_date(unit)
        if timestamp == "overwrite":
            self.dates = [date]
        elif timestamp == "keep_both" and date not in self.dates:
            self.dates = [*self.dates, date]
        self.text = text
        self.turn_ids = tuple(dict.fromkeys((*self.turn_ids, *batch_turn_ids(unit))))
        self.merges += 1

    def state(self) -> dict[str, Json]:
        """Return the memory as JSON values."""
        return {
            "memory_id": self.memory_id,
            "text": self.text,
            "created": self.created,
            "dates": list(self.dates),
            "turn_ids": list(self.turn_ids),
            "merges": self.merges,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "StoredFact":
        """Make the memory that :meth:`state` described."""
        return cls(**{**state, "dates": list(state["dates"]), "turn_ids": tuple(state["turn_ids"])})
