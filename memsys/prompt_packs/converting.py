"""Turn what was cut into a template with our ``$name`` placeholders."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsys.errors import DataError
from memsys.prompt_packs.cutting import Segment

#: Stands around the source of a slot while a text is converted; no source file holds it.
_SLOT = "\0"


@dataclass(frozen=True, slots=True)
class Mapped:
    """Conversion of the slots of an authors' prompt; every value is a piece of a ``$name`` template.

    Attributes:
        slots: source of the inserted expression -> our placeholder.
        replace: word of the text that the authors replace by a value -> our placeholder.
        spans: ``(first, last, template)``: the lines from the one that holds ``first``, a slot or a word, to the next
            one that holds ``last``, for which there is one value here.
    """

    slots: Mapping[str, str] = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)
    spans: Sequence[tuple[str, str, str]] = ()


def convert(segments: Sequence[Segment], mapped: Mapped, name: str) -> str:
    """Return the template: dollar signs of the text are doubled, slots become placeholders, nothing else changes.

    Args:
        segments: what was cut.
        mapped: how slots are filled; what it names and the text lacks is ignored, see :func:`unused`.
        name: of the prompt, for errors.

    Raises:
        DataError: a slot has no placeholder.
    """
    text = _marked(segments).replace("$", "$$")
    for first, last, template in mapped.spans:
        text = _replace_span(text, first, last, braced(template))
    for word, template in mapped.replace.items():
        text = text.replace(word, braced(template))
    pieces = text.split(_SLOT)
    pieces[1::2] = [_slot(source, mapped.slots, name) for source in pieces[1::2]]
    return "".join(pieces)


def braced(template: str) -> str:
    """Write ``$name`` as ``${name}``, so that a letter may follow it."""
    return re.sub(r"\$([A-Za-z_]\w*)", r"${\1}", template)


def unused(segments: Sequence[Segment], mapped: Mapped) -> list[str]:
    """Return the names of the map that the text does not have."""
    slots = {segment.source for segment in segments if not isinstance(segment, str)}
    text = _marked(segments)
    words = [*mapped.replace, *(mark for first, last, _ in mapped.spans for mark in (first, last))]
    return [slot for slot in mapped.slots if slot not in slots] + [word for word in words if word not in text]


def _marked(segments: Sequence[Segment]) -> str:
    return "".join(segment if isinstance(segment, str) else f"{_SLOT}{segment.source}{_SLOT}" for segment in segments)


def _slot(source: str, slots: Mapping[str, str], name: str) -> str:
    if source not in slots:
        known = ", ".join(slots) or "none"
        raise DataError(f"prompt {name}: its slot {source!r} has no placeholder; slots of the catalogue are {known}")
    return braced(str(slots[source]))


def _replace_span(text: str, first: str, last: str, template: str) -> str:
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if first in line), -1)
    end = next((at for at, line in enumerate(lines) if at >= start and last in line), -1)
    return text if min(start, end) < 0 else "\n".join([*lines[:start], template, *lines[end + 1 :]])
