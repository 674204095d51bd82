"""Role ``extract``: the facts of a batch of segments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.lightmem.entries import dated
from baselines.lightmem.roles import TEXTS
from baselines.lightmem.rules import BareLists
from baselines.lightmem.sensory import BufferedTurn
from baselines.lightmem.short_term import Batch
from memsys.llm.bounded import salvaged
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.reading import ReplyReading, fenced_block
from memsys.llm.structured import parse_bare_list

_ANY_DATA = {"type": "object", "required": ["data"], "properties": {"data": {"type": "array"}}}


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact of a reply.

    Attributes:
        text: one sentence.
        turn: the message that gives the fact its date and its speaker.
        topic: number of that message's segment.
        turn_ids: the messages it came from: the one it names, or all of its batch where it names none of them.
    """

    text: str
    turn: BufferedTurn
    topic: int
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extraction:
    """Facts of one batch in the order of their turns, and what happened."""

    facts: Sequence[FoundFact]
    counts: Counter[str]


async def extract_facts(llm: LanguageModel, role: Role, batch: Batch, bare_lists: BareLists) -> Extraction:
    """List the facts of a batch with one call."""
    key = f"{batch[0].turns[0].turn_id}..{batch[-1].turns[-1].turn_id}"
    reply = await llm.ask(role, {"messages": batch_text(batch)}, key=key)
    return read_facts(reply, batch, role.reading, bare_lists)


def batch_text(batch: Batch) -> str:
    """Write the messages of a batch, numbered from 0, under a heading for each topic."""
    lines, number = [], 0
    for topic in batch:
        lines.append(TEXTS("topic", number=topic.number))
        for turn in topic.turns:
            date = dated(turn.date)
            lines.append(f"{f'[{date}] ' if date else ''}{number}.{turn.speaker}: {turn.text}")
            number += 1
    return "\n".join(lines)


def read_facts(reply: Reply, batch: Batch, reading: ReplyReading, bare_lists: BareLists) -> Extraction:
    """Give each fact the turn that it names, and the turns that it came from.

    Of a malformed reply, items that can be read are kept, those before a cut too where the reading repairs; those of a
    list without its object where ``bare_lists`` is ``read``. A number beyond the batch stands for its last message, a
    negative or unreadable one for its first; that is a choice of whose date and name the fact gets, and no evidence
    that it was said there. Facts are sorted by their turns.
    """
    counts: Counter[str] = Counter()
    given = reply.value
    if given is None:
        given = _found_in(reply.text, reading, bare_lists)
        counts["fallback.extract"] += 1
    turns = [(turn, topic.number) for topic in batch for turn in topic.turns]
    whole_batch = tuple(turn.turn_id for turn, _ in turns)
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for item in given["data"] if given is not None else ():
        text = str(item.get("fact") or "").strip() if isinstance(item, Mapping) else ""
        if not text:
            counts["facts.unreadable"] += 1
            continue
        place, inside = _place(item.get("source_id"), len(turns))
        counts["facts.source_out_of_range"] += not inside
        found.append((place, text, (turns[place][0].turn_id,) if inside else whole_batch))
    found.sort(key=lambda each: each[0])
    return Extraction([FoundFact(text, *turns[place], turn_ids) for place, text, turn_ids in found], counts)


def _found_in(text: str, reading: ReplyReading, bare_lists: BareLists) -> Mapping[str, Any] | None:
    """Find the object of a malformed reply: as it is or in a code block, in prose where ``reading.cut`` says so."""
    block = fenced_block(text)
    bare = text.strip() if block is None else block
    found = salvaged(text if reading.cut else bare, _ANY_DATA, repair=reading.repair, cut=reading.cut)
    if found is None and bare_lists == "read" and reading.bare_lists:
        found = parse_bare_list(bare, "data", _ANY_DATA)
    return found


def _place(given: Any, turns: int) -> tuple[int, bool]:
    """Return the number of a message, and whether it was one."""
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):
        return 0, False
    place = min(max(number, 0), turns - 1)
    return place, place == number
