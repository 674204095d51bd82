"""The text that the reader sees: portrait, digest, and what was found, day by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.limits import count_within, room_for_context
from baselines.memorybank.bank import BankEntry
from baselines.memorybank.roles import TEXTS
from baselines.memorybank.rules import MemoryBankContextRules
from memsys.llm.contract import LanguageModel


@dataclass(frozen=True, slots=True)
class MemoryBankContext:
    """The text, how many of its parts (portrait, digest, entries) the limit left out, and how many entries it has."""

    text: str
    left_out: int
    entries: int


@dataclass(frozen=True, slots=True)
class Overall:
    """Summary of the whole conversation; empty where none was made."""

    history: str = ""
    personality: str = ""

    def lines(self) -> list[str]:
        """Write portrait and digest."""
        portrait = [TEXTS("personality", text=self.personality)] if self.personality else []
        return [*portrait, *([TEXTS("history", text=self.history)] if self.history else [])]


async def write_context(
    llm: LanguageModel,
    rules: MemoryBankContextRules,
    overall: Overall,
    found: Sequence[BankEntry],
    position: Mapping[str, int],
) -> MemoryBankContext:
    """Write portrait, digest and entries; entries are in the order of the conversation.

    Args:
        llm: the backbone, whose tokenizer is called only where the limit is near.
        rules: what is shown.
        overall: portrait and digest.
        found: entries, best first.
        position: of these entries in the conversation, by id.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    limit, heads = room_for_context(llm, rules.max_tokens, rules.reserve_tokens), overall.lines()
    blocks = [*heads, *(entry.shown for entry in found)]
    closing = _dates(found) if rules.dates_recalled else ""
    kept = len(blocks)
    # A token has a byte at least, so that a text with fewer bytes than the limit fits.
    if sum(len(block.encode()) + 1 for block in (*blocks, closing)) > limit:
        kept = await count_within(llm, blocks, limit - await llm.count_tokens(f"{closing}\n"))
    entries = sorted(found[: max(0, kept - len(heads))], key=lambda entry: position[entry.entry_id])
    lines = [*heads[:kept], *(entry.shown for entry in entries)]
    if rules.dates_recalled and entries:
        lines.append(_dates(entries))
    return MemoryBankContext("".join(f"{line}\n" for line in lines if line), len(blocks) - kept, len(entries))


def _dates(entries: Sequence[BankEntry]) -> str:
    dates = [date for date in dict.fromkeys(entry.date for entry in entries) if date]
    return TEXTS("dates", dates="; ".join(dates)) if dates else ""
