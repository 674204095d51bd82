"""What is stored for good: facts with their dates, speakers and sources."""

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memsys.dates import parse_date
from memsys.vocabulary import Hit


@dataclass(frozen=True, slots=True)
class DatedFact:
    """A fact.

    Attributes:
        fact_id: unique within the conversation.
        text: one sentence.
        date: of the session it was told in, as the data set writes it.
        speaker: of the message it was found in.
        topic: number of the segment.
        turn_ids: the message it was found in, and those behind what rewrote it.
    """

    fact_id: str
    text: str
    date: str
    speaker: str
    topic: int
    turn_ids: tuple[str, ...]

    def hit(self, score: float) -> Hit:
        """Return the fact as a retrieved memory."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.fact_id)

    def state(self) -> dict[str, Any]:
        """Return the fact as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "DatedFact":
        """Make the fact that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


def weekday(date: str) -> str:
    """Name the day of the week; empty where the date cannot be read."""
    moment = parse_date(date)
    return calendar.day_name[moment.weekday()] if moment else ""


def dated(date: str) -> str:
    """Write a date with its day of the week, where both are known."""
    return ", ".join(part for part in (date, weekday(date)) if part)
