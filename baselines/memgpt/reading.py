"""From the agent's reply to the call that it makes."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baselines.memgpt.roles import USED
from baselines.memgpt.rules import SEND
from memsys.llm.bounded import object_of
from memsys.llm.contract import Reply
from memsys.llm.reading import TOLERANT

#: The text of a message in a reply that is not an object, however it is repaired.
_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)')
_OWN_KEYS = ("thought", "function", "args")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as the agent wrote it; nothing of it is checked yet.

    Attributes:
        name: of the function; empty where the reply could not be read.
        args: arguments.
        thought: before the call.
    """

    name: str
    args: Mapping[str, Any]
    thought: str

    @property
    def heartbeat(self) -> bool:
        """Whether it asks for another step."""
        return str(self.args.get("request_heartbeat", "")).lower() == "true"

    @property
    def identity(self) -> str:
        """Equal for calls of one function with the same arguments."""
        given = {key: value for key, value in self.args.items() if key != "request_heartbeat" and value != ""}
        return json.dumps([self.name, given], sort_keys=True)


def read_call(reply: Reply) -> FunctionCall | None:
    """Read a reply that was parsed and repaired already, in the last resort the text of a message alone.

    Returns:
        The call; one without a name where the reply holds what should be an object and is none; ``None`` where the
        reply is plain text, which counts as a thought.
    """
    value = object_of(reply, USED, TOLERANT)
    if value is not None:
        args = value.get("args")
        given = args if isinstance(args, Mapping) else {k: v for k, v in value.items() if k not in _OWN_KEYS}
        thought = value.get("thought")
        return FunctionCall(str(value["function"]).strip(), given, thought if isinstance(thought, str) else "")
    if "{" not in reply.text:
        return None
    message = _MESSAGE.search(reply.text) if SEND in reply.text else None
    return FunctionCall("", {}, "") if message is None else FunctionCall(SEND, {"message": _unescaped(message[1])}, "")


def _unescaped(inside: str) -> str:
    """Return what is between the quotes of a JSON text; as it is written, where it has escapes that are none."""
    try:
        return str(json.loads(f'"{inside}"', strict=False))
    except ValueError:
        return inside
