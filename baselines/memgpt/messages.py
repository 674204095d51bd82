"""Messages of the queue, as the agent sees them, and the summary of those that left it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from baselines.memgpt.roles import TEXTS

Sender = Literal["user", "assistant", "function"]
EventType = Literal["user_message", "heartbeat", "system_alert"]


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message of the queue.

    Attributes:
        sender: who sent it; events come from the user, results from functions.
        text: JSON, as the agent sees it.
        date: of the session.
        lines: turns of a conversation, as the reader is shown them; none for other messages.
        turn_ids: of the lines.
        tokens: of what the agent sees, counted with the backbone's tokenizer.
    """

    sender: Sender
    text: str
    date: str
    lines: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    tokens: int = 0

    @property
    def shown(self) -> str:
        """The line that the agent sees."""
        return f"{self.sender}: {self.text}"

    def counted(self, tokens: int) -> "QueuedMessage":
        """Return the same message with its number of tokens."""
        return replace(self, tokens=tokens)

    def state(self) -> dict[str, Any]:
        """Return the message as JSON values."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "lines": list(self.lines), "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "QueuedMessage":
        """Make the message that :meth:`state` described."""
        return cls(**{**state, "lines": tuple(state["lines"]), "turn_ids": tuple(state["turn_ids"])})


@dataclass(frozen=True, slots=True)
class EvictionSummary:
    """Replacement of all messages that were evicted so far.

    Attributes:
        text: written by the backbone, or made of the messages' first words.
        hidden: messages that were evicted.
        turn_ids: keys: of the turns that were evicted, in order. The next summary takes the dictionary over and adds
            to it, as a copy would grow with the conversation.
        message: as the agent sees it.
    """

    text: str
    hidden: int
    turn_ids: dict[str, None]
    message: QueuedMessage

    def state(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        message = self.message.state()
        return {"text": self.text, "hidden": self.hidden, "turn_ids": list(self.turn_ids), "message": message}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "EvictionSummary":
        """Make the summary that :meth:`state` described."""
        message = QueuedMessage.from_state(state["message"])
        return cls(state["text"], int(state["hidden"]), dict.fromkeys(state["turn_ids"]), message)


def event(kind: EventType, date: str, message: str) -> QueuedMessage:
    """Make an event without turns."""
    return QueuedMessage("user", _json(type=kind, time=date, message=message), date)


def turns_event(date: str, lines: Sequence[str], turn_ids: Sequence[str]) -> QueuedMessage:
    """Make the event that shows turns of a session."""
    text = _json(type="user_message", time=date, message="\n".join(lines))
    return QueuedMessage("user", text, date, tuple(lines), tuple(turn_ids))


def result(ok: bool, date: str, message: str) -> QueuedMessage:
    """Make the message that holds what a function returned."""
    return QueuedMessage("function", _json(status="OK" if ok else "Failed", message=message, time=date), date)


def said(date: str, most_chars: int, **fields: Any) -> QueuedMessage:
    """Make the message of a call, or of a thought, cut to so many characters."""
    return QueuedMessage("assistant", _json(**fields)[:most_chars], date)


def summary_message(date: str, hidden: int, summary: str) -> QueuedMessage:
    """Make the message that stands for evicted ones."""
    return event("system_alert", date, TEXTS("summary", hidden=hidden, summary=summary))


def _json(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)
