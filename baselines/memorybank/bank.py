"""Store of days with their pieces and summaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from baselines.memorybank.roles import TEXTS
from baselines.memorybank.rules import PieceCut
from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Turn, Unit


@dataclass(frozen=True, slots=True)
class BankEntry:
    """A piece of talk, or the summary of a day or of a part of one.

    Attributes:
        entry_id: unique within the conversation.
        date: of the day, as the data set writes it; may be empty.
        text: what was said, or the summary, without the date.
        turn_ids: the turns said or summarised.
        is_summary: which of the two.
    """

    entry_id: str
    date: str
    text: str
    turn_ids: tuple[str, ...]
    is_summary: bool = False

    @property
    def shown(self) -> str:
        """The entry with its date, as it is indexed and as the reader sees it."""
        text = TEXTS("summary", text=self.text) if self.is_summary else self.text
        return f"[{self.date}] {text}" if self.date else text

    def hit(self, score: float, *, summary_names_turns: bool) -> Hit:
        """Return the entry as a retrieved memory; whether a summary names the turns of its day is the config's."""
        turn_ids = self.turn_ids if summary_names_turns or not self.is_summary else ()
        return Hit(text=self.text, score=score, turn_ids=turn_ids, memory_id=self.entry_id)

    def state(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "BankEntry":
        """Make the entry that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


@dataclass(slots=True)
class Day:
    """A session: its pieces, its summaries, and what it shows of the speakers.

    Attributes:
        date: of the session, as the data set writes it.
        pieces: in order.
        summaries: one; several where the session is long.
        personality: what each part of the day shows of the speakers.
    """

    date: str
    pieces: list[BankEntry] = field(default_factory=list)
    summaries: list[BankEntry] = field(default_factory=list)
    personality: list[str] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Return the day as JSON values."""
        return {
            "date": self.date,
            "pieces": [piece.state() for piece in self.pieces],
            "summaries": [summary.state() for summary in self.summaries],
            "personality": list(self.personality),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Day":
        """Make the day that :meth:`state` described."""
        return cls(
            date=state["date"],
            pieces=[BankEntry.from_state(entry) for entry in state["pieces"]],
            summaries=[BankEntry.from_state(entry) for entry in state["summaries"]],
            personality=list(state["personality"]),
        )


def entries_of(days: Sequence[Day]) -> dict[str, BankEntry]:
    """Return all entries by id, in the order of the days, a day's summaries before its pieces."""
    return {entry.entry_id: entry for day in days for entry in (*day.summaries, *day.pieces)}


def pieces_of(unit: Unit, turn_format: TurnFormat, cut: PieceCut) -> list[BankEntry]:
    """Cut a session into pieces; no turn is lost.

    Turns of one speaker in a row belong together. Such a run and the next speaker's make a pair; the last run of a
    session may be left without a reply.
    """
    return [
        BankEntry(
            entry_id=turns[0].turn_id,
            date=turns[0].date_time,
            text="\n".join(turn_format.render(turn) for turn in turns),
            turn_ids=tuple(turn.turn_id for turn in turns),
        )
        for turns in _cut(unit.turns, cut)
    ]


def _cut(turns: Sequence[Turn], cut: PieceCut) -> Iterator[list[Turn]]:
    if cut == "turns":
        yield from ([turn] for turn in turns)
        return
    runs = [list(run) for _, run in groupby(turns, key=lambda turn: turn.speaker)]
    for first in range(0, len(runs), 2):
        yield [turn for run in runs[first : first + 2] for turn in run]
