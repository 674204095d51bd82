"""The text that the reader sees: core memory, summary, latest messages and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass

from baselines.limits import count_within, room_for_context
from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.rules import MemGptContextRules, MemGptTexts
from baselines.memgpt.storage import MemGptRecord
from memsys.llm.contract import LanguageModel


@dataclass(frozen=True, slots=True)
class SeenMemories:
    """What there is to show.

    Attributes:
        core: names and texts of blocks.
        summary: of evicted messages; may be empty.
        results: found records, in the order of the calls.
        recent: turns of the queue, oldest first.
    """

    core: Sequence[tuple[str, str]]
    summary: str
    results: Sequence[MemGptRecord]
    recent: Sequence[MemGptRecord]


@dataclass(frozen=True, slots=True)
class WrittenContext:
    """The text, how many of the latest turns are in it, and how many blocks the limits left out."""

    text: str
    recent: int
    left_out: int


def recent_turns(messages: Sequence[QueuedMessage]) -> list[MemGptRecord]:
    """Return the turns that the queue holds, oldest first."""
    return [
        MemGptRecord(turn_id, message.date, line, (turn_id,))
        for message in messages
        for turn_id, line in zip(message.turn_ids, message.lines, strict=True)
    ]


async def write_context(
    llm: LanguageModel, rules: MemGptContextRules, texts: MemGptTexts, seen: SeenMemories
) -> WrittenContext:
    """Write all sections that have something in them.

    Where a limit is near, core memory and summary go first, then what was found, then turns from the latest one.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    headings = "\n\n".join((texts.core, texts.summary, texts.recent, texts.results))
    room = room_for_context(llm, rules.max_tokens, rules.reserve_tokens) - await llm.count_tokens(headings)
    core = [texts.block.format(name=name, text=text) for name, text in seen.core]
    summary = [seen.summary] if seen.summary else []
    results = [_entry(texts, record) for record in seen.results]
    recent = [_entry(texts, record) for record in reversed(seen.recent)]
    allowed = len(recent) if rules.recent_tokens is None else await count_within(llm, recent, rules.recent_tokens)
    blocks = [*core, *summary, *results, *recent[:allowed]]
    kept = await count_within(llm, blocks, room)
    shown: list[list[str]] = []
    left = kept
    for part in (core, summary, results, recent[:allowed]):
        shown.append(part[: max(left, 0)])
        left -= len(part)
    sections = (
        (texts.core, shown[0]),
        (texts.summary, shown[1]),
        (texts.recent, shown[3][::-1]),
        (texts.results, shown[2]),
    )
    text = "\n\n".join("\n".join([heading, *lines]) for heading, lines in sections if lines)
    return WrittenContext(text, len(shown[3]), len(core + summary + results + recent) - sum(map(len, shown)))


def _entry(texts: MemGptTexts, record: MemGptRecord) -> str:
    return texts.entry.format(date=record.date, text=record.text) if record.date else record.text
