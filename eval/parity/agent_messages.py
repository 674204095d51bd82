"""Messages of MemGPT's queue as prompts show them: their tokens, and their content in either prompt set."""

import json
import re
from collections.abc import Mapping
from typing import Any

from eval.parity.facts import MARK

_LINE = re.compile(r"^(user|assistant|function): (\{.*\})$", re.MULTILINE)
#: What a message counts besides its marks and the words of turns.
_TOKENS, _TOKENS_OF_A_MARK = 10, 4
_NUMBER = re.compile(r"\d+")
#: What a search returns: where in the results it is, and the results.
_FOUND = re.compile(r"^([^\[]*?\d[^\[]*?): (\[.*\])$", re.DOTALL)
_RESULT = re.compile(r"^(?:timestamp: )?(?P<time>.*?), (?P<sender>user|assistant) - (?P<text>.*)$", re.DOTALL)
_NOTE = re.compile(r"^(?:timestamp: )?(?P<time>.*?), memory: (?P<text>.*)$", re.DOTALL)
#: Numbers of the release's heading: results of the page, of all, the page, the last one. Ours has six.
_THEIR_NUMBERS = 4
#: A queue's first message, which no model wrote.
_FIRST = "the first message"
#: The function that it calls.
_SPOKEN = "send_message"
#: What a function returned that returns nothing.
_NOTHING = ("done", "None", None)
_BLOCKS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"<persona: (\d+) of (\d+) characters>\n(.*?)\n<human: (\d+) of (\d+) characters>\n(.*?)\n\n",
        r'<persona characters="(\d+)/(\d+)">\n(.*?)\n</persona>\n'
        r'<human characters="(\d+)/(\d+)">\n(.*?)\n</human>',
    )
)
#: Core memory and the numbers of stored messages: what the prompt of a step shows of each.
MEMORY_PARTS = 2
_COUNTS = (
    re.compile(r"(\d+) messages in recall memory, (\d+) notes in archival memory"),
    re.compile(r"(\d+) previous messages .*?\n(\d+) total memories"),
)


def message_tokens(text: str) -> int:
    """Count the tokens of messages; other lines count nothing, so that instructions may be phrased differently."""
    return sum(_line_tokens(fields) for _, fields in _messages(text))


def _line_tokens(fields: Mapping[str, Any]) -> int:
    tokens = _TOKENS + _TOKENS_OF_A_MARK * len(MARK.findall(json.dumps(fields)))
    told = fields.get("message") if fields.get("type") == "user_message" else ""
    return tokens + len(str(told).split())


def _messages(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(sender, json.loads(fields)) for sender, fields in _LINE.findall(text)]


def shown_messages(text: str) -> list[Any]:
    """Return the content of a prompt's messages, without the text of events, failures and headings."""
    return [_told(sender, fields) for sender, fields in _messages(text)]


def shown_memory(text: str) -> list[Any]:
    """Return the core memory and numbers of stored messages, as either side writes them; empty for none."""
    found = [pattern.search(text) for pattern in (*_BLOCKS, *_COUNTS)]
    return [one.groups() for one in found if one]


def _told(sender: str, fields: Mapping[str, Any]) -> Any:
    if sender == "assistant":
        call = sender, fields.get("thought"), fields.get("function"), fields.get("args")
        return (sender, _FIRST) if call[2] == _SPOKEN and not MARK.search(str(call)) else call
    if sender == "user":
        return (sender, fields["type"], fields["time"], *_said(fields))
    if fields["status"] != "OK":
        return sender, fields["status"], fields["time"]
    return sender, fields["status"], fields["time"], _returned(fields["message"])


def _said(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the content of an event: a message literally; of a heartbeat whether it follows a failure.

    Of an alert it is how many messages are hidden, if any are, and the marks of their summary.
    """
    message = str(fields.get("message") or fields.get("reason") or "")
    if fields["type"] == "user_message":
        return (message,)
    if fields["type"] == "heartbeat":
        return ("failed" in message,)
    number = _NUMBER.search(MARK.split(message, maxsplit=1)[0])
    return (number and number[0], *MARK.findall(message))


def _returned(message: Any) -> Any:
    if message in _NOTHING:
        return ()
    found = _FOUND.match(str(message))
    if found is None:
        return "no results"
    head = [int(number) for number in _NUMBER.findall(found[1])]
    total, page, pages = (head[1], head[2], head[3]) if len(head) == _THEIR_NUMBERS else (head[2], head[3], head[-1])
    return total, page, pages, [_result(result) for result in json.loads(found[2])]


def _result(text: str) -> Any:
    note = _NOTE.match(text)
    found = _RESULT.match(text)
    if found is None or (note and note.start("text") < found.start("text")):
        return (note["time"], note["text"]) if note else text
    if found["sender"] == "assistant":
        return found["time"], found["sender"], found["text"] if MARK.search(found["text"]) else _FIRST
    return found["time"], _told("user", json.loads(found["text"]))
