"""Short-term memory: segments that wait until there are enough of them for one extraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.lightmem.sensory import BufferedTurn, Segment, turn_of


@dataclass(frozen=True, slots=True)
class Topic:
    """A segment with its number in the conversation."""

    number: int
    turns: Sequence[BufferedTurn]

    @property
    def tokens(self) -> int:
        """Tokens of all turns, by the backbone's tokenizer."""
        return sum(turn.tokens for turn in self.turns)


Batch = Sequence[Topic]


class ShortTermBuffer:
    """Segments up to ``limit`` tokens; a longer segment is a batch of its own."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._topics: list[Topic] = []
        self._next = 0

    def push(self, segment: Segment) -> list[Batch]:
        """Append a segment; return what had to make room for it."""
        topic = Topic(self._next, segment)
        self._next += 1
        full = sum(each.tokens for each in self._topics) + topic.tokens > self._limit
        emitted = self.flush() if full else []
        self._topics.append(topic)
        return emitted

    def flush(self) -> list[Batch]:
        """Take everything out."""
        emitted, self._topics = self._topics, []
        return [emitted] if emitted else []

    def state(self) -> dict[str, Any]:
        """Return the waiting segments and the count of segments so far."""
        topics = [{"number": each.number, "turns": [turn.state() for turn in each.turns]} for each in self._topics]
        return {"next": self._next, "topics": topics}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self._next = state["next"]
        self._topics = [Topic(each["number"], [turn_of(turn) for turn in each["turns"]]) for each in state["topics"]]
