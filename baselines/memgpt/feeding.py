"""Parts of a session that are prepared before it is written: events, records of its turns, and passages."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from baselines.memgpt.messages import QueuedMessage, turns_event
from baselines.memgpt.rules import IngestionRules
from baselines.memgpt.storage import MemGptRecord
from memsys.embedding.contract import Vectors
from memsys.protocol import Parts
from memsys.units import conversation_of
from memsys.vocabulary import Unit

#: Turns of an event in mode ``turn``.
_PAIR = 2


@dataclass(frozen=True, slots=True)
class FedSession:
    """A session ready to be written.

    Attributes:
        speakers: of the whole conversation.
        events: that show its turns, in order.
        records: of its turns.
        vectors: of the records, shape (turns, d); ``None`` where turns are not searched by cosine.
        passages: notes that are stored without asking the agent; none but in mode ``insert``.
        passage_vectors: of the passages, shape (passages, d).
    """

    speakers: tuple[str, ...]
    events: Sequence[QueuedMessage]
    records: Sequence[MemGptRecord]
    vectors: Vectors | None
    passages: Sequence[MemGptRecord]
    passage_vectors: Vectors


async def feed(parts: Parts, rules: IngestionRules, unit: Unit, *, embed_turns: bool) -> FedSession:
    """Render a session, cut it into events and passages, and embed what is searched by cosine.

    Raises:
        ValueError: the unit names no conversation.
    """
    speakers = tuple(filter(None, conversation_of(unit).speaking))
    records = [
        MemGptRecord(turn.turn_id, turn.date_time, parts.turn_format.render(turn), (turn.turn_id,))
        for turn in unit.turns
    ]
    costs = await asyncio.gather(*(parts.llm.count_tokens(f"{record.text}\n") for record in records))
    most = _PAIR if rules.mode == "turn" else len(records)
    events = [_event(group) for group in _groups(records, costs, most, rules.event_tokens)]
    passages = []
    if rules.mode == "insert":
        cut = _groups(records, costs, rules.passage_turns, rules.passage_tokens)
        passages = [_passage(group) for group in cut]
    texts = [each.text for each in (*(records if embed_turns else ()), *passages)]
    vectors = await parts.embedder.embed(texts)
    split = len(texts) - len(passages)
    return FedSession(speakers, events, records, vectors[:split] if embed_turns else None, passages, vectors[split:])


def _groups(
    records: Sequence[MemGptRecord], costs: Sequence[int], most: int, tokens: int
) -> Iterator[list[MemGptRecord]]:
    """Cut consecutive records into groups of so many, and of so many tokens; a longer record is a group."""
    group: list[MemGptRecord] = []
    used = 0
    for record, cost in zip(records, costs, strict=True):
        if group and (len(group) == most or used + cost > tokens):
            yield group
            group, used = [], 0
        group.append(record)
        used += cost
    if group:
        yield group


def _event(group: Sequence[MemGptRecord]) -> QueuedMessage:
    lines, turn_ids = [record.text for record in group], [record.record_id for record in group]
    return turns_event(group[0].date, lines, turn_ids)


def _passage(group: Sequence[MemGptRecord]) -> MemGptRecord:
    """Make a passage of turns; its id says which is the first."""
    turn_ids = tuple(record.record_id for record in group)
    return MemGptRecord(f"passage:{turn_ids[0]}", group[0].date, "\n".join(record.text for record in group), turn_ids)
