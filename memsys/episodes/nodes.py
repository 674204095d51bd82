"""Messages, blocks of them, episodes and semantic facts.

Each level names the one below it, so every fact leads back to turns: a fact to its episode, an episode to its messages,
a message to its turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from memsys.dates import normalised
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn

#: Why a block ended: by the model's reply, at the size limit, with the session, with the stream, or (where messages
#: are segmented batch by batch) with its batch.
Cut = Literal["model", "limit", "session", "end", "batch"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn as a line of text. ``time`` is ISO where the data set's date can be read, else as written."""

    turn_id: str
    session_id: str
    line: str
    time: str

    @classmethod
    def of(cls, turn: Turn, turn_format: TurnFormat) -> "Message":
        """Make the message of a turn, written in the run's turn format."""
        return cls(turn.turn_id, turn.session_id, turn_format.render(turn), normalised(turn.date_time))

    @property
    def dated(self) -> str:
        """The line after its time."""
        return f"[{self.time}] {self.line}" if self.time else self.line


def joined(messages: Iterable[Message], *, dated: bool) -> str:
    """Write messages one per line."""
    return "\n".join(message.dated if dated else message.line for message in messages)


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """Messages, in order, that become one episode: consecutive ones, but where a segmenter grouped them otherwise."""

    messages: tuple[Message, ...]
    cut: Cut
    reason: str

    @property
    def key(self) -> str:
        """Key of the calls about the block."""
        return f"{self.messages[0].turn_id}..{self.messages[-1].turn_id}"

    def state(self) -> dict[str, Any]:
        """Return the block as JSON values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "MessageBlock":
        """Make the block that :meth:`state` described."""
        return cls(messages_from(state["messages"]), state["cut"], state["reason"])


def messages_from(state: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Make the messages of a snapshot."""
    return tuple(Message(**entry) for entry in state)


@dataclass(frozen=True, slots=True)
class Episode:
    """A block described as a story. ``time`` is when it happened; empty where the data set has no dates."""

    episode_id: str
    title: str
    content: str
    time: str
    messages: tuple[Message, ...]

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """The turns that it describes."""
        return tuple(message.turn_id for message in self.messages)

    @property
    def headline(self) -> str:
        """Title and content as one text."""
        return f"{self.title}. {self.content}"

    def state(self) -> dict[str, Any]:
        """Return the episode as JSON values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Episode":
        """Make the episode that :meth:`state` described."""
        return cls(**{**state, "messages": messages_from(state["messages"])})


@dataclass(frozen=True, slots=True)
class Fact:
    """A semantic node: one lasting statement, from one episode, whose time it has."""

    fact_id: str
    text: str
    episode_id: str
    time: str
