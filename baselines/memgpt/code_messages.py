"""Messages as MemGPT's released code keeps them: JSON with the time, all of them in the queue and in recall storage."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.reading import FunctionCall
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import SEND
from baselines.memgpt.storage import MemGptRecord
from memsys.dates import parse_date

#: How the release writes a time; it begins with the day, by which recall storage is searched.
_TIME = "%Y-%m-%d %I:%M:%S %p"


def written_time(date: str) -> str:
    """Write the date of a session as the release writes times; unchanged where it cannot be read."""
    moment = parse_date(date)
    return date if moment is None else moment.strftime(_TIME)


def event(kind: str, time: str, message: str) -> QueuedMessage:
    """Make an event without turns."""
    return QueuedMessage("user", json.dumps({"type": kind, "message": message, "time": time}), time)


def turns_event(time: str, lines: Sequence[str], turn_ids: Sequence[str]) -> QueuedMessage:
    """Make the event that shows turns of a session."""
    shown = event("user_message", time, "\n".join(lines))
    return QueuedMessage("user", shown.text, time, tuple(lines), tuple(turn_ids))


def said(time: str, call: FunctionCall | None, thought: str) -> QueuedMessage:
    """Make the message of a reply: a thought, and the call as it was written where there is one."""
    fields: dict[str, Any] = {"thought": thought}
    if call is not None:
        fields |= {"function": call.name, "args": dict(call.args)}
    return QueuedMessage("assistant", json.dumps(fields), time)


def result(ok: bool, time: str, message: str) -> QueuedMessage:
    """Make the message that holds what a function returned."""
    fields = {"status": "OK" if ok else "Failed", "message": message, "time": time}
    return QueuedMessage("function", json.dumps(fields), time)


def first_messages(time: str) -> list[QueuedMessage]:
    """Make the messages that a queue begins with: a first call, its result, and that the user has come."""
    call = FunctionCall(SEND, {"message": TEXTS("first_message")}, TEXTS("first_thought"))
    return [said(time, call, call.thought), result(True, time, TEXTS("done")), event("login", time, TEXTS("login"))]


def searched_text(message: QueuedMessage) -> str | None:
    """Return the text that recall storage searches: events as they are, and thoughts, but no results."""
    if message.sender == "user":
        return message.text
    if message.sender == "assistant":
        return str(_fields(message)["thought"])
    return None


def record_of(message: QueuedMessage, number: int) -> MemGptRecord:
    """Return the record of a message of recall storage, under its number there."""
    text = "\n".join(message.lines) or searched_text(message) or ""
    return MemGptRecord(f"message:{number}", message.date, text, message.turn_ids)


def _fields(message: QueuedMessage) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(message.text)
    return found
