"""Greedy packing of whole turns into chunks; a chunk never crosses a session."""

from dataclasses import dataclass

from baselines.passages import Passage


@dataclass(frozen=True, slots=True)
class CountedTurn:
    """One turn as a passage of its own, with the tokens of its line and of its date's line."""

    passage: Passage
    session_id: str
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
        self.session_id = ""

    def add(self, turn: CountedTurn) -> Passage | None:
        """Add a turn; returns the chunk that it closed, if it did not fit or began another session."""
        fits = (
            self.open is not None
            and turn.session_id == self.session_id
            and self.open.tokens + turn.line_tokens <= self._limit
        )
        if fits and self.open is not None:
            self.open = Passage(
                passage_id=self.open.passage_id,
                date_time=self.open.date_time,
                lines=self.open.lines + turn.passage.lines,
                turn_ids=self.open.turn_ids + turn.passage.turn_ids,
                tokens=self.open.tokens + turn.line_tokens,
            )
            return None
        closed, self.session_id = self.open, turn.session_id
        self.open = Passage(
            passage_id=turn.passage.passage_id,
            date_time=turn.passage.date_time,
            lines=turn.passage.lines,
            turn_ids=turn.passage.turn_ids,
            tokens=turn.date_tokens + turn.line_tokens,
        )
        return closed

    def close(self) -> Passage | None:
        """Return the open chunk, if any."""
        closed, self.open = self.open, None
        return closed
