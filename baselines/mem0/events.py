"""Events that replies of the roles ``route`` and ``decide`` request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from baselines.mem0.roles import EVENTS
from memsys.facts.extraction import unfenced
from memsys.llm.bounded import object_of, salvaged
from memsys.llm.contract import Reply
from memsys.llm.reading import ReplyReading
from memsys.vocabulary import Json

_ANY_MEMORY = {"type": "object", "required": ["memory"]}
_ANY_EVENT = {"type": "object", "required": ["event"]}

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


def events_of_route(reply: Reply, reading: ReplyReading) -> Events:
    """Read a reply of ``route``; of a malformed one take every item that can be read.

    One that was cut inside its last item is repaired where the reading repairs, so that the items before it count. An
    item without text is skipped whatever its event, as in Mem0. Where the reading keeps texts as they are, so are ids
    and events: one in other letters, or an id that is a number, changes nothing, as in Mem0.
    """
    given = _memory_of(reply, reading)
    items = given.get("memory") if given else []
    events, skipped = [], Counter[str]()
    for item in items if isinstance(items, list) else []:
        event = _event(item) if reading.strip else _event_as_written(item)
        if event is None:
            skipped["unknown_event"] += 1
        elif not event.text:
            skipped["empty_text"] += 1
        else:
            events.append(event)
    return Events(tuple(events), skipped, _fallback(reply, bool(events)))


def _memory_of(reply: Reply, reading: ReplyReading) -> Mapping[str, Any] | None:
    """Find the object with a ``memory``; without cutting, in all of the reply but a code block around it."""
    if reply.value is not None or reading.cut:
        return object_of(reply, _ANY_MEMORY, reading)
    return salvaged(unfenced(reply.text), _ANY_MEMORY, repair=reading.repair, cut=False)


def event_of_decide(reply: Reply, fact: str, reading: ReplyReading) -> Events:
    """Read a reply of ``decide``; where it gives no text, the fact is the text."""
    given = object_of(reply, _ANY_EVENT, reading)
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


def _event_as_written(item: Json) -> Event | None:
    """Return an event with Mem0's names; a text that is not a string can be neither stored nor embedded."""
    if not isinstance(item, Mapping) or item.get("event") not in EVENTS:
        return None
    kind, alias, text = str(item["event"]), item.get("id"), item.get("text")
    told = text if isinstance(text, str) or kind in ("ADD", "UPDATE") else str(text or "")
    return Event(kind, alias if isinstance(alias, str) else "", told if isinstance(told, str) else "")


def _fallback(reply: Reply, found: bool) -> EventFallback | None:
    if reply.value is not None:
        return None
    return "recovered" if found else "lost"
