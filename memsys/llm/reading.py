"""Parsing of a role's reply: tolerant, or as a released code parses it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from memsys.errors import ConfigError
from memsys.llm.structured import parse_object
from memsys.vocabulary import Json

_FENCE = re.compile(r"^```(?:json)?\s*|\s*```$", flags=re.MULTILINE)
_TICKS = "```"

FieldCheck = Literal["exact", "used", "any"]
ListItems = Literal["texts", "any"]


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """A role's ``reading`` block; the defaults are the tolerant reading of the presets that follow no release.

    Attributes:
        repair: JSON that was cut short is closed (if ``backbone.json_repair`` allows it too); else it is malformed.
        cut: where prose or a code fence is around an object, the outermost braces are read; otherwise only a reply
            that is JSON as a whole counts.
        check: ``exact`` takes an object that follows the schema it was asked with; ``used`` one that holds what the
            role reads of it, whatever else it holds, as a code that does not validate does; ``any`` every object.
        bare_lists: where an object with one list is asked for, the list alone will do.
        strip: texts lose the white space around them, and lists their empty texts.
        items: of a list of texts, ``texts`` keeps those, and what texts lie in lists and objects within it; with
            ``any`` a number, a list or null becomes the text that Python writes for it, as in a code without types.
    """

    repair: bool = True
    cut: bool = True
    check: FieldCheck = "exact"
    bare_lists: bool = True
    strip: bool = True
    items: ListItems = "texts"

    def texts(self, given: list[str]) -> list[str]:
        """Return the texts of a list as this reading takes them."""
        return [stripped for text in given if (stripped := text.strip())] if self.strip else list(given)

    def text(self, given: str) -> str:
        """Return a text as this reading takes it."""
        return given.strip() if self.strip else given


#: The reading of a role whose preset says nothing else.
TOLERANT = ReplyReading()


def make_reading(role: str, settings: Mapping[str, Json] | None) -> ReplyReading:
    """Make a role's reading from its YAML block; ``None`` is the tolerant one.

    Raises:
        ConfigError: an unknown setting, or a value that is not one of its choices.
    """
    given, known = dict(settings or {}), [field.name for field in fields(ReplyReading)]
    if unknown := [key for key in given if key not in known]:
        raise ConfigError(f"role {role}: reading.{unknown[0]} is unknown; known are {', '.join(known)}")
    reading = ReplyReading(**given)
    for key in ("repair", "cut", "bare_lists", "strip"):
        if not isinstance(getattr(reading, key), bool):
            raise ConfigError(f"role {role}: reading.{key}={getattr(reading, key)!r} must be true or false")
    for key, choices in (("check", get_args(FieldCheck)), ("items", get_args(ListItems))):
        value = getattr(reading, key)
        if value not in choices:
            raise ConfigError(f"role {role}: reading.{key}={value!r} is unknown; choose one of {', '.join(choices)}")
    return reading


def accepted_schema(
    reading: ReplyReading, schema: Mapping[str, Json] | None, used: Mapping[str, Json] | None
) -> Mapping[str, Json] | None:
    """Return the schema that a reply must follow, where it is not the one that is asked for.

    Args:
        reading: of the role.
        schema: what is asked for; ``None`` for free text.
        used: what the role reads of an object; ``None``: every field of ``schema``.
    """
    if schema is None or reading.check == "exact":
        return None
    if reading.check == "any":
        return {"type": "object"}
    return used or {key: part for key, part in schema.items() if key != "additionalProperties"}


def unfenced_object(text: str) -> Mapping[str, Any] | None:
    """Return the object that free text is, code fences aside; ``None`` when it is anything else, or holds more."""
    bare = _FENCE.sub("", text.strip()).strip()
    return parse_object(bare, {"type": "object"}, repair=False, cut=False).value


def fenced_block(text: str) -> str | None:
    """Return what the first code block of a text holds, without the white space around it; ``None`` without one.

    A regular expression for it, as the released codes have one, takes time that grows with the cube of the white space
    in a block that is not closed.
    """
    _, opening, rest = text.partition(_TICKS)
    inside, closing, _ = rest.partition(_TICKS)
    return inside.removeprefix("json").strip() if opening and closing else None
