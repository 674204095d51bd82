"""Greedy packing of whole turns into chunks; a chunk never crosses a session, nor a record where that is the bound."""

from dataclasses import dataclass, replace
from typing import Literal

from baselines.passages import Passage
from memsys.vocabulary import Turn

#: What a chunk may not cross. Where a data set has no records within a session, both are the same.
Bound = Literal["record", "session"]


def bound_of(turn: Turn, bound: Bound) -> tuple[str, str]:
    """Return what two turns must share to be in one chunk: the session, and for ``record`` the record."""
    return turn.session_id, str(turn.extra.get("record", "")) if bound == "record" else ""


@dataclass(frozen=True, slots=True)
class CountedTurn:
    """One turn as a passage of its own, with the tokens of its line and of its date's line."""

    passage: Passage
    bound: tuple[str, str]
    line_tokens: int
    date_tokens: int


class ChunkPacker:
    """Takes turns in order and gives back each chunk once it is full.

    Args:
        limit: tokens of a chunk, the date counted once.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.open: Passage | None = None
        self.bound = ("", "")

    def add(self, turn: CountedTurn) -> Passage | None:
        """Add a turn; returns the chunk that it closed, if it did not fit or crossed the bound."""
        fits = self.open is not None and turn.bound == self.bound and self.open.tokens + turn.line_tokens <= self._limit
        if fits and self.open is not None:
            self.open = replace(
                self.open,
                lines=self.open.lines + turn.passage.lines,
                turn_ids=self.open.turn_ids + turn.passage.turn_ids,
                tokens=self.open.tokens + turn.line_tokens,
                labels=tuple(dict.fromkeys(self.open.labels + turn.passage.labels)),
            )
            return None
        closed, self.bound = self.open, turn.bound
        self.open = replace(turn.passage, tokens=turn.date_tokens + turn.line_tokens)
        return closed

    def close(self) -> Passage | None:
        """Return the open chunk, if any."""
        closed, self.open = self.open, None
        return closed
