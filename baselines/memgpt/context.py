"""The text that the reader sees: core memory, summary, latest messages and what was found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.limits import count_within, room_for_context
from baselines.memgpt.core import CoreMemory
from baselines.memgpt.functions import CallChain
from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.rules import MemGptContextRules, MemGptTexts
from baselines.memgpt.storage import MemGptRecord
from memsys.llm.contract import LanguageModel
from memsys.vocabulary import Hit, Json, RankingName, Retrieval


@dataclass(frozen=True, slots=True)
class SeenMemories:
    """Parts of the context.

    Attributes:
        core: its blocks that hold something are shown.
        summary: of evicted messages; may be empty.
        chain: calls for the question, with what they found.
        messages: of the queue, oldest first.
    """

    core: CoreMemory
    summary: str
    chain: CallChain
    messages: Sequence[QueuedMessage]


@dataclass(frozen=True, slots=True)
class WrittenContext:
    """The text, its memories, and how many blocks the limits left out.

    Attributes:
        text: what the reader sees.
        hits: what was found, in the order of the calls, then the turns of the queue that are in the text, latest first.
        left_out: blocks that found no room.
        shown: places of the hits in the text; a turn that was found is in it too where it is among the latest shown.
        found: how many of the hits were searched for.
    """

    text: str
    hits: tuple[Hit, ...]
    left_out: int
    shown: tuple[int, ...]
    found: int

    def retrieval(self, trace: Mapping[str, Json], *, ranked: bool, answer: str | None) -> Retrieval:
        """Return what the memory answers, with what was searched for as a ranking of its own."""
        searched: dict[RankingName, tuple[int, ...]] = {"searched": tuple(range(self.found))}
        return Retrieval(self.hits, self.text, trace, ranked=ranked, answer=answer, shown=self.shown, rankings=searched)

    def trace(self, chain: CallChain) -> dict[str, Json]:
        """Return what the trace says of the calls and of their results."""
        return {
            "calls": dict(sorted(Counter(chain.calls).items())),
            "failed": list(chain.failures),
            "found": self.found,
            "recent": len(self.hits) - self.found,
            "left_out": self.left_out,
        }


def _latest_turns(messages: Sequence[QueuedMessage]) -> list[MemGptRecord]:
    """Return the turns that the queue holds, latest first; a message without lines shows none."""
    return [
        MemGptRecord(turn_id, message.date, line, (turn_id,))
        for message in reversed(messages)
        if message.lines
        for turn_id, line in reversed([*zip(message.turn_ids, message.lines, strict=True)])
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
    found, latest = seen.chain.found, _latest_turns(seen.messages)
    core = [texts.block.format(name=block.name, text=block.text) for block in seen.core.blocks.values() if block.text]
    summary = [seen.summary] if seen.summary else []
    results = [_entry(texts, record) for record, _ in found.values()]
    recent = [_entry(texts, record) for record in latest]
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
    hits = [record.hit(score) for record, score in found.values()]
    shown_latest = {record.record_id: record for record in latest[: len(shown[3])]}
    hits += [record.hit(0.0) for name, record in shown_latest.items() if name not in found]
    in_text = [place < len(shown[2]) or name in shown_latest for place, name in enumerate(found)]
    places = (*(place for place, there in enumerate(in_text) if there), *range(len(found), len(hits)))
    left_out = len(core + summary + results + recent) - sum(map(len, shown))
    return WrittenContext(text, tuple(hits), left_out, places, len(found))


def _entry(texts: MemGptTexts, record: MemGptRecord) -> str:
    return texts.entry.format(date=record.date, text=record.text) if record.date else record.text
