"""Long-term entries: facts with their dates, speakers and sources."""

import calendar
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from memsys.dates import parse_date
from memsys.vocabulary import Hit

if TYPE_CHECKING:
    from baselines.lightmem.sensory import BufferedTurn

#: Between two turns of a session: two messages, half a second apart, of which the second has no text.
_BETWEEN_TURNS = timedelta(seconds=1)
_NO_DATE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DatedFact:
    """A fact.

    Attributes:
        fact_id: unique within the conversation.
        text: one sentence.
        date: of the session it was told in, as the data set writes it.
        speaker: of the message it was found in.
        topic: number of the segment.
        turn_ids: the message it was found in, or all of its batch where it names none, and what rewrote it came from.
        moment: its time stamp as the released code makes it, in ISO form; empty where the update does not go by it.
    """

    fact_id: str
    text: str
    date: str
    speaker: str
    topic: int
    turn_ids: tuple[str, ...]
    moment: str = ""

    def hit(self, score: float) -> Hit:
        """Return the fact as a retrieved memory."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.fact_id)

    def state(self) -> dict[str, Any]:
        """Return the fact as JSON values."""
        found = {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}
        if not self.moment:
            del found["moment"]
        return found

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "DatedFact":
        """Make the fact that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


def weekday(date: str) -> str:
    """Name the day of the week; empty where the date cannot be read."""
    moment = parse_date(date)
    return calendar.day_name[moment.weekday()] if moment else ""


def moments(turns: Sequence["BufferedTurn"]) -> dict[str, str]:
    """Give turns that are extracted at once their time stamps, as the released code does.

    A session's turns follow each other by a second, from its date on; the next extraction of the same session begins
    at that date again. A date that cannot be read precedes all others.

    Returns:
        Id of a turn -> date and time in ISO form.
    """
    counts: dict[str, int] = defaultdict(int)
    found = {}
    for turn in turns:
        moment = (parse_date(turn.date) or _NO_DATE) + counts[turn.date] * _BETWEEN_TURNS
        found[turn.turn_id] = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
        counts[turn.date] += 1
    return found


def dated(date: str) -> str:
    """Write a date with its day of the week, where both are known."""
    return ", ".join(part for part in (date, weekday(date)) if part)
