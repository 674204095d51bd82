"""Recovery of parts of a reply that does not follow its schema."""

from collections.abc import Mapping
from typing import Any

from memsys.llm.bounded import object_of
from memsys.llm.contract import Reply
from memsys.llm.reading import TOLERANT, ReplyReading

_ANY_OBJECT = {"type": "object"}
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def loose_object(reply: Reply, reading: ReplyReading) -> Mapping[str, Any]:
    """Return the reply's object whether or not it validates, repaired where the reading does so; else an empty one."""
    return object_of(reply, _ANY_OBJECT, reading) or {}


def text_of(found: Mapping[str, Any], name: str, reading: ReplyReading = TOLERANT) -> str:
    """Return a member as text, stripped; empty where it is missing or no string.

    Where the reading checks nothing, as the released codes of Nemori and xMemory, what is not a string becomes the text
    that Python writes for it.
    """
    value = found.get(name, "")
    if reading.check == "any":
        value = str(value)
    return value.strip() if isinstance(value, str) else ""


def flag_of(found: Mapping[str, Any], name: str, reading: ReplyReading = TOLERANT) -> bool | None:
    """Return a member as a truth value, also when it is written as a string; ``None`` where it is neither.

    Where the reading checks nothing it is what Python takes it for: the text ``"false"`` is true.
    """
    value = found.get(name)
    if reading.check == "any" and name in found:
        return bool(value)
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def texts_of(found: Mapping[str, Any], name: str, reading: ReplyReading = TOLERANT) -> list[str]:
    """Return a member's strings, stripped; anything else in the list is left out, one by one.

    Where the reading checks nothing, one item of another type costs the whole list, as in the released codes of Nemori
    and xMemory, which strip each; empty values are left out, and no text is stripped.
    """
    value = found.get(name)
    items = value if isinstance(value, list) else []
    if reading.check == "any":
        kept = [item for item in items if item]
        return [item for item in kept if item.strip()] if all(isinstance(item, str) for item in kept) else []
    texts = [item.strip() for item in items if isinstance(item, str)]
    return [text for text in texts if text]
