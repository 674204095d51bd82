"""Passages: what the baselines index and show, a turn or a run of turns with the date of its session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Turn


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive turns of one session.

    Attributes:
        passage_id: unique within the conversation.
        date_time: of the session, as the data set writes it; may be empty.
        lines: one per turn, in the run's turn format.
        turn_ids: the turns.
        tokens: of the shown text, counted with the backbone's tokenizer line by line; 0 where nothing needs it.
        labels: how the lines name their speakers.
    """

    passage_id: str
    date_time: str
    lines: tuple[str, ...]
    turn_ids: tuple[str, ...]
    tokens: int = 0
    labels: tuple[str, ...] = ()

    @property
    def undated(self) -> str:
        """The turns' lines."""
        return "\n".join(self.lines)

    @property
    def shown(self) -> str:
        """The turns' lines after the date: on the same line for one turn, on a line of its own for several."""
        if not self.date_time:
            return self.undated
        return f"[{self.date_time}]{' ' if len(self.lines) == 1 else chr(10)}{self.undated}"

    def hit(self, score: float) -> Hit:
        """Return the passage as a retrieved memory."""
        return Hit(text=self.undated, score=score, turn_ids=self.turn_ids, memory_id=self.passage_id)

    def state(self) -> dict[str, Any]:
        """Return the passage as JSON values."""
        return {
            "passage_id": self.passage_id,
            "date_time": self.date_time,
            "lines": list(self.lines),
            "turn_ids": list(self.turn_ids),
            "tokens": self.tokens,
            "labels": list(self.labels),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Passage":
        """Make the passage that :meth:`state` described."""
        return cls(
            passage_id=state["passage_id"],
            date_time=state["date_time"],
            lines=tuple(state["lines"]),
            turn_ids=tuple(state["turn_ids"]),
            tokens=int(state["tokens"]),
            labels=tuple(state["labels"]),
        )


def passage_of_turn(turn: Turn, turn_format: TurnFormat, tokens: int = 0) -> Passage:
    """Make the passage of one turn; it has the turn's id."""
    label = turn_format.label(turn)
    return Passage(
        passage_id=turn.turn_id,
        date_time=turn.date_time,
        lines=(turn_format.render(turn),),
        turn_ids=(turn.turn_id,),
        tokens=tokens,
        labels=(label,) if label else (),
    )


def shown_together(passages: Sequence[Passage]) -> str:
    """Write passages one after the other, as the reader sees them."""
    return "\n".join(passage.shown for passage in passages)
