"""Notes as text, for the reader and for the checks of the refinement."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel
from memsys.memfly.rules import EvidenceRules
from memsys.memfly.store import NoteLayer


@dataclass(frozen=True, slots=True)
class Evidence:
    """The text, how many lines of it the token limit cut, and the positions of the notes that are whole in it.

    A note of which the limit cut a line is not among them, although others of its lines are shown: a note names the
    turns that it came from, not those of each line.
    """

    text: str
    dropped_lines: int
    whole: frozenset[int]


@dataclass(frozen=True, slots=True)
class EvidenceWriter:
    """Writes notes: dates and context, then the raw turns."""

    llm: LanguageModel
    rules: EvidenceRules
    notes: NoteLayer

    async def write(self, ranked: Sequence[int]) -> Evidence:
        """Write notes, given by position, best first. Calls the backbone's tokenizer only where the limit is near.

        Raises:
            ConfigError: the backbone's window leaves no room.
        """
        blocks = {position: self.notes[position].lines() for position in ranked}
        limit = self._limit()
        shown = blocks
        if sum(len(line.encode()) + 1 for lines in blocks.values() for line in lines) > limit:
            shown = await self._within(blocks, limit)
        order = sorted(shown) if self.rules.order == "chronological" else list(shown)
        text = "".join(f"{line}\n" for position in order for line in shown[position])
        whole = frozenset(position for position, lines in blocks.items() if shown.get(position) == lines)
        return Evidence(text, sum(map(len, blocks.values())) - sum(map(len, shown.values())), whole)

    def _limit(self) -> int:
        left = self.llm.context_length - self.rules.reserve_tokens
        if left <= 0:
            raise ConfigError(
                f"memory.evidence.reserve_tokens={self.rules.reserve_tokens} leaves no room in the backbone's context "
                f"of {self.llm.context_length} tokens; lower it, or raise the backbone's context length"
            )
        return left if self.rules.max_tokens is None else min(left, self.rules.max_tokens)

    async def _within(self, blocks: dict[int, list[str]], limit: int) -> dict[int, list[str]]:
        """Keep lines in order of rank up to the first that does not fit; the very first line is cut to fit."""
        kept: dict[int, list[str]] = {}
        spent = 0
        for position, lines in blocks.items():
            for line in lines:
                cost = await self.llm.count_tokens(f"{line}\n")
                if spent + cost > limit:
                    return kept or {position: [await self._cut(line, cost, limit)]}
                spent += cost
                kept.setdefault(position, []).append(line)
        return kept

    async def _cut(self, line: str, cost: int, limit: int) -> str:
        while cost > limit and line:
            line = line[: min(len(line) * limit // cost, len(line) - 1)]
            cost = await self.llm.count_tokens(f"{line}\n")
        return line
