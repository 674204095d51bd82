"""Grouping the messages of a batch by subject: role ``segment``, one call per batch (Nemori, since November 2025)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from baselines.nemori.roles import TEXTS
from baselines.nemori.rules import BatchRules
from memsys.episodes.nodes import Message, MessageBlock
from memsys.episodes.recovery import loose_object, text_of
from memsys.llm.contract import LanguageModel, Role
from memsys.llm.values import whole_number
from memsys.vocabulary import Turn


@dataclass(frozen=True, slots=True)
class Segmented:
    """Blocks of a batch, by their first message, and what happened on the way."""

    blocks: tuple[MessageBlock, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """Messages that belong together: places in the batch, from 0 and ascending, and their subject."""

    places: tuple[int, ...]
    topic: str


def cut_batches(turns: Sequence[Turn], rules: BatchRules) -> list[tuple[Turn, ...]]:
    """Cut a stream into batches of ``rules.size``, or less where a session ends in them and ``session_cut`` is set."""
    batches: list[tuple[Turn, ...]] = []
    start = 0
    while start < len(turns):
        end = min(start + rules.size, len(turns))
        if rules.session_cut and end < len(turns):
            borders = (
                place for place in range(end, start, -1) if turns[place].session_id != turns[place - 1].session_id
            )
            end = next(borders, end)
        batches.append(tuple(turns[start:end]))
        start = end
    return batches


async def segment(
    llm: LanguageModel, role: Role, messages: Sequence[Message], rules: BatchRules, stream: int
) -> Segmented:
    """Group a batch with one call; depends on the batch and the length of its stream alone.

    Fallback of ``segment``: the groups that the reply holds nevertheless; one block of everything where it has none.

    Args:
        llm: the backbone.
        role: ``segment``.
        messages: of the batch.
        rules: of batches.
        stream: messages of the whole conversation.
    """
    if (stream if rules.least < rules.size else len(messages)) < rules.least:
        return Segmented((MessageBlock(tuple(messages), "end", ""),), {"batch.unsegmented": 1, "cut.end": 1})
    lines = (f"{number}. {_clipped(message, rules.clip_chars)}" for number, message in enumerate(messages, start=1))
    key = f"{messages[0].turn_id}..{messages[-1].turn_id}"
    reply = await llm.ask(role, {"messages": "\n".join(lines), "count": str(len(messages))}, key=key)
    counts: Counter[str] = Counter({"fallback.segment": int(reply.value is None)})
    groups = read_groups(loose_object(reply, role.reading), len(messages), counts)
    if not groups:
        counts["segment.whole"] += 1
        groups = [MessageGroup(tuple(range(len(messages))), "")]
    counts["cut.batch"] += 1
    counts["cut.model"] += len(groups) - 1
    last = groups[-1]
    return Segmented(tuple(_block(messages, group, last=group is last) for group in groups), +counts)


def _clipped(message: Message, chars: int | None) -> str:
    return replace(message, line=message.line[:chars]).dated


def _block(messages: Sequence[Message], group: MessageGroup, *, last: bool) -> MessageBlock:
    reason = TEXTS("same_subject", topic=group.topic) if group.topic else TEXTS("belong_together")
    return MessageBlock(tuple(messages[place] for place in group.places), "batch" if last else "model", reason)


def read_groups(found: Mapping[str, Any], count: int, counts: Counter[str]) -> list[MessageGroup]:
    """Make a partition of ``count`` messages of the groups in a reply, by their first message; empty where none is.

    A number that names no message is left out; a message named twice belongs to the group that named it first; one that
    no group names joins the message before it, at the beginning of a batch the first one that was named.

    Args:
        found: the reply's object; numbers in it count from 1.
        count: messages of the batch.
        counts: numbers that were left out, repeated and missing are added here.
    """
    listed = found.get("episodes")
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    owner: dict[int, int] = {}
    for number, entry in enumerate(entries):
        for index in _numbers(entry.get("indices")):
            if not 1 <= index <= count:
                counts["segment.out_of_range"] += 1
            elif owner.setdefault(index - 1, number) != number:
                counts["segment.repeated"] += 1
    if not owner:
        return []
    counts["segment.missing"] += count - len(owner)
    places: dict[int, list[int]] = {}
    current = owner[min(owner)]
    for place in range(count):
        current = owner.get(place, current)
        places.setdefault(current, []).append(place)
    return [MessageGroup(tuple(kept), text_of(entries[number], "topic")) for number, kept in places.items()]


def _numbers(value: Any) -> list[int]:
    """Return the whole numbers of a list, also those written as strings."""
    if not isinstance(value, list):
        return []
    texts = [str(item).strip() for item in value if not isinstance(item, bool)]
    return [number for number in map(whole_number, texts) if number is not None]
