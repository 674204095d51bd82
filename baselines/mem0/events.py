"""What a reply of the roles ``route`` and ``decide`` asks for."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from baselines.mem0.roles import EVENTS
from memsys.llm.bounded import salvaged
from memsys.llm.contract import Reply
from memsys.llm.reading import TOLERANT, ReplyReading
from memsys.vocabulary import Json

#: ``recovered``: events were found in a malformed reply. ``lost``: none were, and the facts are lost with them.
EventFallback = Literal["recovered", "lost"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event on the memory that the reply knows as ``alias``."""

    kind: str
    alias: str
    text: str


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one reply in its order; ``skipped`` counts the items that are none, by reason."""

    events: tuple[Event, ...]
    skipped: Counter[str] = field(default_factory=Counter)
    fallback: EventFallback | None = None


def events_of_route(reply: Reply, reading: ReplyReading = TOLERANT) -> Events:
    """Read a reply of ``route``; of a malformed one take every item that can be read.

    One that was cut inside its last item is repaired where the reading repairs, so that the items before it count. An
    item without text is skipped whatever its event, as in Mem0.
    """
    given = _object_with("memory", reply, reading)
    items = given.get("memory") if given else []
    events, skipped = [], Counter[str]()
    for item in items if isinstance(items, list) else []:
        event = _event(item)
        if event is None:
            skipped["unknown_event"] += 1
        elif not event.text:
            skipped["empty_text"] += 1
        else:
            events.append(event)
    return Events(tuple(events), skipped, _fallback(reply, bool(events)))


def event_of_decide(reply: Reply, fact: str, reading: ReplyReading = TOLERANT) -> Events:
    """Read a reply of ``decide``; where it gives no text, the fact is the text."""
    given = _object_with("event", reply, reading)
    event = _event(given)
    if event is None:
        return Events((), Counter({"unknown_event": 1} if given else {}), _fallback(reply, found=False))
    return Events((Event(event.kind, event.alias, event.text or fact),), Counter(), _fallback(reply, found=True))


def _event(item: Json) -> Event | None:
    if not isinstance(item, Mapping):
        return None
    kind = str(item.get("event", "")).strip().upper()
    kind = "NONE" if kind == "NOOP" else kind
    text = item.get("text")
    if kind not in EVENTS:
        return None
    return Event(kind, str(item.get("id", "")).strip(), text.strip() if isinstance(text, str) else "")


def _fallback(reply: Reply, found: bool) -> EventFallback | None:
    if reply.value is not None:
        return None
    return "recovered" if found else "lost"


def _object_with(key: str, reply: Reply, reading: ReplyReading) -> Mapping[str, Any] | None:
    if reply.value is not None:
        return reply.value
    return salvaged(reply.text, {"type": "object", "required": [key]}, repair=reading.repair, cut=reading.cut)
