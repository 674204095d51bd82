"""Reading replies within bounds: none over a limit, short ones at once, long ones in a process outside the event loop.

Repairing JSON takes time that grows with the square of some texts' length, and milliseconds for each character of
others; in the event loop nothing else would continue meanwhile, time-outs included.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from memsys.llm.contract import Reply
from memsys.llm.reading import ReplyReading
from memsys.llm.repairing import REPAIR_PROCESS
from memsys.llm.structured import Parsed, parse_object
from memsys.vocabulary import Json

#: Characters of a reply that is read in the event loop whatever it holds: the worst takes a third of a second.
INLINE_CHARS = 1_000
#: Characters of a malformed reply that a memory system still reads in place, by repair: over all that a role's
#: ``max_tokens`` allow.
_SALVAGED_CHARS = 16_000
#: Objects and lists in it: each level that stays open makes the repair of all that follows slower.
_SALVAGED_OPENINGS = 200


class Bounds(NamedTuple):
    """Limits of what is read.

    Attributes:
        chars: characters of a reply without thinking; a longer one is malformed.
        seconds: processor time that one reply may take; one that takes longer is malformed.
    """

    chars: int
    seconds: float


def parse_at_once(
    bounds: Bounds, text: str, schema: Mapping[str, Json], *, repair: bool, cut: bool = True
) -> Parsed | None:
    """Do what :func:`memsys.llm.structured.parse_object` does; ``None`` where that takes :func:`parse_apart`."""
    if len(text) > bounds.chars:
        return Parsed(None, problem=f"{len(text)} characters, over the limit of {bounds.chars}")
    if len(text) <= INLINE_CHARS:
        return parse_object(text, schema, repair=repair, cut=cut)
    plain = parse_object(text, schema, repair=False, cut=cut)
    return plain if plain.value is not None or not repair or "{" not in text else None


async def parse_apart(bounds: Bounds, text: str, schema: Mapping[str, Json], *, cut: bool = True) -> Parsed:
    """Repair and parse a text in a process of its own, within bounds."""
    return await asyncio.to_thread(REPAIR_PROCESS.parse, text, schema, cut=cut, seconds=bounds.seconds)


def salvaged(
    text: str, schema: Mapping[str, Json], *, repair: bool = True, cut: bool = True
) -> Mapping[str, Any] | None:
    """Read what can be read of a reply that its role's schema refused, in place; a long one is not repaired.

    Args:
        text: the reply without thinking.
        schema: what is enough of an object.
        repair: whether cut or broken JSON may be repaired.
        cut: whether the outermost braces may be cut out.
    """
    if len(text) > _SALVAGED_CHARS or text.count("{") + text.count("[") > _SALVAGED_OPENINGS:
        return None
    return parse_object(text, schema, repair=repair, cut=cut).value


def object_of(reply: Reply, schema: Mapping[str, Json], reading: ReplyReading) -> Mapping[str, Any] | None:
    """Return the object of a reply, or what can be read of one that its role's schema refused.

    Args:
        reply: of a role.
        schema: what is enough of an object.
        reading: of the role.

    Returns:
        ``None`` where nothing can be read.
    """
    if reply.value is not None:
        return reply.value
    return salvaged(reply.text, schema, repair=reading.repair, cut=reading.cut)
