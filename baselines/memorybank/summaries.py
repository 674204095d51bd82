"""Summaries of days and of the conversation, and what replaces empty replies."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.limits import cut_to_tokens
from baselines.memorybank.rules import SummaryRules
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Role
from memsys.scripts import SENTENCE_END, count_words, first_words
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn

_SENTENCE_END = re.compile(rf"{SENTENCE_END}|\n+")


@dataclass(frozen=True, slots=True)
class DayPart:
    """Consecutive turns of a day, and their transcript."""

    turns: tuple[Turn, ...]
    transcript: str


@dataclass(frozen=True, slots=True)
class DaySummary:
    """A text from the backbone, or what replaces an empty one; ``was_cut`` at the limit of new tokens."""

    text: str
    fallback: bool = False
    was_cut: bool = False


async def parts_of(llm: LanguageModel, turns: Sequence[Turn], turn_format: TurnFormat, limit: int) -> list[DayPart]:
    """Split a day into parts of at most ``limit`` tokens; a longer turn is cut from its end to fit.

    A part ends with a record of the data set, unless the record alone is longer.
    """
    lines = [turn_format.render(turn) for turn in turns]
    costs = await asyncio.gather(*(llm.count_tokens(f"{line}\n") for line in lines))
    parts: list[DayPart] = []
    for rows in _packed([str(turn.extra.get("record", "")) for turn in turns], costs, limit):
        text = "\n".join(lines[row] for row in rows)
        if len(rows) == 1 and costs[rows[0]] > limit:
            text = await cut_to_tokens(llm, text, limit)
        parts.append(DayPart(tuple(turns[row] for row in rows), text))
    return parts


def _packed(records: Sequence[str], costs: Sequence[int], limit: int) -> list[list[int]]:
    """Pack rows in order; where the next one does not fit, the part ends at the last end of a record."""
    packed: list[list[int]] = []
    open_rows: list[int] = []
    for row, record in enumerate(records):
        while open_rows and sum(costs[each] for each in open_rows) + costs[row] > limit:
            keep = len(open_rows)
            if record and record != records[open_rows[0]]:
                keep = next(place for place in range(len(open_rows), 0, -1) if _ends(records, open_rows[place - 1]))
            packed.append(open_rows[:keep])
            open_rows = open_rows[keep:]
        open_rows.append(row)
    return [*packed, *([open_rows] if open_rows else [])]


def _ends(records: Sequence[str], row: int) -> bool:
    return row + 1 == len(records) or records[row + 1] != records[row]


async def unwanted() -> DaySummary:
    """Make no call."""
    return DaySummary("")


async def ask_for_text(
    llm: LanguageModel, role: Role, values: Mapping[str, str], *, key: str, otherwise: str = ""
) -> DaySummary:
    """Ask for a text; an empty reply gives ``otherwise``."""
    reply = await llm.ask(role, values, key=key)
    text = reply.text.strip()
    return DaySummary(text or otherwise, not text, reply.completion.finish_reason == "length")


def first_sentences(transcript: str, count: int) -> str:
    """Return the first sentences of a transcript; a line's end ends a sentence too."""
    return " ".join([part for part in _SENTENCE_END.split(transcript.strip()) if part][:count])


async def dated_entries(
    llm: LanguageModel, entries: Sequence[tuple[str, str]], rules: SummaryRules
) -> tuple[str, bool]:
    """Write texts after their dates, oldest first, within what the window leaves.

    Where they do not fit, each is cut to the same share of its words, so that no day is lost and the instruction stays.

    Returns:
        The text, and whether it was cut.

    Raises:
        ConfigError: the window leaves no room.
    """
    limit = llm.context_length - rules.reserve_tokens
    if limit <= 0:
        raise ConfigError(
            f"memory.summaries.reserve_tokens={rules.reserve_tokens} leaves no room in the backbone's context of "
            f"{llm.context_length} tokens; lower it, or raise the backbone's context length"
        )
    share, cut = 1.0, False
    while True:
        text = "\n".join(_dated(date, _share_of(text, share)) for date, text in entries)
        cost = await llm.count_tokens(text)
        if cost <= limit or share == 0:
            return text, cut
        cut, smaller = True, share * limit / cost * 0.95
        share = smaller if smaller > 1e-3 else 0.0


def _dated(date: str, text: str) -> str:
    return f"[{date}] {text}" if date else text


def _share_of(text: str, share: float) -> str:
    return text if share == 1 else first_words(text, int(count_words(text) * share))
