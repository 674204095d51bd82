"""MemoryBank as a memory system."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.limits import cut_to_tokens, room_for_context
from baselines.memorybank.bank import BankEntry, Day, entries_of, pieces_of
from baselines.memorybank.config import MemoryBankConfig
from baselines.memorybank.context import Overall, write_context
from baselines.memorybank.forgetting import days_ago, is_kept
from baselines.memorybank.roles import ROLES, TEXTS, make_roles
from baselines.memorybank.summaries import (
    DayPart,
    DaySummary,
    ask_for_text,
    dated_entries,
    first_sentences,
    parts_of,
    unwanted,
)
from memsys.counting import counter_from, counter_state, counts_with
from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.notes.spans import timed
from memsys.protocol import BaseMemory, Parts, State
from memsys.units import conversation_of, session_units
from memsys.vocabulary import Conversation, Json, Retrieval, Unit

#: Counters that the statistics report even at zero.
_ALWAYS = (
    *(f"fallback.{role}" for role in ROLES),
    *(f"cut.{role}" for role in ROLES),
    "forgotten.pieces",
    "forgotten.summaries",
    "forgotten.bare_days",
    "undated_days",
    "entries_cut",
)


@dataclass(frozen=True, slots=True)
class PreparedDay:
    """A day with the vectors (entries, d) of its summaries and pieces, in this order, who speaks, and what happened.

    ``user`` is the speaker of the conversation that a portrait of one person is of.
    """

    day: Day
    vectors: Vectors
    user: str
    speakers: Sequence[str]
    counts: Counter[str]


class MemoryBankMemory(BaseMemory):
    """Pieces and summaries of days in one index, with a portrait and a digest of the whole.

    A session is a day. It is summarised and embedded in :meth:`prepare`, without a look at others; digest and portrait
    are made of all days once the stream has ended (one call each), and then pieces are forgotten. Questions strengthen
    nothing: what one recalls does not change what the next one sees.
    """

    def __init__(self, config: MemoryBankConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._summaries, self._forgetting = config.summary_rules, config.forgetting_rules
        self._roles = make_roles(config.roles)
        self._index = VectorIndex(parts.embedder.dimension)
        self._days: list[Day] = []
        self._entries: dict[str, BankEntry] = {}  # all that can be found, in the order of the index
        self._overall = Overall()
        self._user = ""
        self._speakers: list[str] = []
        self._counts: Counter[str] = Counter()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per session."""
        return session_units(conversation)

    async def prepare(self, unit: Unit) -> PreparedDay:
        """Cut the day into pieces, summarise and describe it, and embed pieces and summaries.

        Raises:
            ValueError: the unit does not come from :meth:`units`.
        """
        user = conversation_of(unit).user
        llm, rules = self._parts.llm, self._summaries
        day = Day(unit.turns[0].date_time, pieces_of(unit, self._parts.turn_format, self._config.pieces))
        counts: Counter[str] = Counter()
        if rules.days or rules.portrait != "off":
            parts = await parts_of(llm, unit.turns, self._parts.turn_format, rules.part_tokens)
            made = await asyncio.gather(*(self._describe(unit, number, part) for number, part in enumerate(parts)))
            for number, (part, (summary, personality)) in enumerate(zip(parts, made, strict=True)):
                counts += _counted("day_summary", summary) + _counted("day_personality", personality)
                day.summaries += [_summary(unit, number, part, summary)] if summary.text else []
                day.personality += [personality.text] if personality.text else []
        vectors = await self._parts.embedder.embed([entry.shown for entry in (*day.summaries, *day.pieces)])
        return PreparedDay(day, vectors, user, list(dict.fromkeys(turn.speaker for turn in unit.turns)), counts)

    async def write(self, unit: Unit, prepared: PreparedDay) -> None:
        """Append the day.

        Raises:
            ConfigError: the backbone's window leaves no room; better now than when everything is written.
        """
        rules = self._config.context_rules
        room_for_context(self._parts.llm, rules.max_tokens, rules.reserve_tokens)
        day = prepared.day
        entries = entries_of([day])
        self._index.add(list(entries), prepared.vectors)
        self._entries.update(entries)
        self._days.append(day)
        self._user = prepared.user
        self._speakers = list(dict.fromkeys((*self._speakers, *prepared.speakers)))
        self._counts.update(prepared.counts)

    async def consolidate(self) -> None:
        """Make digest and portrait of all days, then forget."""
        history, personality = await asyncio.gather(self._history(), self._personality())
        self._counts += _counted("overall_history", history) + _counted("overall_personality", personality)
        self._overall = Overall(history.text, personality.text)
        self._forget()

    async def retrieve(self, query: str) -> Retrieval:
        """Find pieces and summaries by the question, and show them after the portrait and the digest."""
        spans: dict[str, float] = {}
        with timed(spans, "embed"):
            vectors = await self._parts.embedder.embed([query])
        with timed(spans, "search"):
            found = self._index.search(vectors[0], self._config.retrieve_k)
        with timed(spans, "format"):
            stored = self._entries
            entries = [stored[entry_id] for entry_id, _ in found]
            position = {entry_id: self._index.position(entry_id) for entry_id, _ in found}
            rules = self._config.context_rules
            context = await write_context(self._parts.llm, rules, self._overall, entries, position)
        named = self._summaries.named_turns == "all"
        hits = tuple(stored[entry_id].hit(score, summary_names_turns=named) for entry_id, score in found)
        trace = {"stored": len(stored), "left_out": context.left_out, "fallbacks": [], "spans": spans}
        return Retrieval(hits, context.text, trace, shown=tuple(range(context.entries)))

    async def _describe(self, unit: Unit, number: int, part: DayPart) -> tuple[DaySummary, DaySummary]:
        """Summarise and describe a part of a day, with one call each; what is not wanted is empty."""
        rules, key = self._summaries, f"{unit.unit_id}:{number}"
        date = part.turns[0].date_time or TEXTS("undated_day")
        values = {"date": date, "transcript": part.transcript}
        subjects = {"subjects": self._subjects(conversation_of(unit).user, [turn.speaker for turn in part.turns])}
        otherwise = first_sentences(part.transcript, rules.fallback_sentences)
        return await asyncio.gather(
            self._ask("day_summary", values, key, otherwise) if rules.days else unwanted(),
            self._ask("day_personality", values | subjects, key) if rules.portrait != "off" else unwanted(),
        )

    async def _ask(self, role: str, values: Mapping[str, str], key: str, otherwise: str = "") -> DaySummary:
        return await ask_for_text(self._parts.llm, self._roles[role], values, key=key, otherwise=otherwise)

    async def _history(self) -> DaySummary:
        entries = [(each.date, each.text) for day in self._days for each in day.summaries]
        if not self._summaries.overall_history or not entries:
            return await unwanted()
        llm = self._parts.llm
        text = await self._dated(entries)
        shortened = await cut_to_tokens(llm, text, self._roles["overall_history"].max_tokens)
        return await self._ask("overall_history", {"entries": text}, "overall", shortened)

    async def _personality(self) -> DaySummary:
        entries = [(day.date, text) for day in self._days for text in day.personality]
        if not entries:
            return await unwanted()
        values = {"entries": await self._dated(entries), "subjects": self._subjects(self._user, self._speakers)}
        return await self._ask("overall_personality", values, "overall")

    async def _dated(self, entries: Sequence[tuple[str, str]]) -> str:
        text, cut = await dated_entries(self._parts.llm, entries, self._summaries)
        self._counts["entries_cut"] += cut
        return text

    def _subjects(self, user: str, speakers: Sequence[str]) -> str:
        """Name whom a portrait is of."""
        if self._summaries.portrait == "user_only":
            return user or TEXTS("user")
        return TEXTS("between").join(dict.fromkeys(speakers))

    def _forget(self) -> None:
        """Drop pieces by their age at the last day of the conversation; the draw of each depends on it alone."""
        rules, parts = self._forgetting, self._parts
        if rules.mode == "off":
            return
        for day, age in zip(self._days, days_ago([day.date for day in self._days]), strict=True):
            self._counts["undated_days"] += age is None
            kept = [
                piece
                for piece in day.pieces
                if is_kept(rules, age or 0, parts.seed, parts.conversation_id, piece.entry_id)
            ]
            gone = [piece for piece in day.pieces if piece not in kept]
            bare = day.summaries if rules.drop_bare_days and not kept else []
            self._counts["forgotten.pieces"] += len(gone)
            self._counts["forgotten.summaries"] += len(bare)
            self._counts["forgotten.bare_days"] += not kept
            day.pieces = kept
            day.summaries = [summary for summary in day.summaries if summary not in bare]
        left = entries_of(self._days)
        self._index.remove([entry_id for entry_id in self._entries if entry_id not in left])
        self._entries = left

    def statistics(self) -> Mapping[str, Json]:
        """Count days, pieces, summaries, what was forgotten, and fallbacks."""
        return {
            "days": len(self._days),
            "pieces": sum(len(day.pieces) for day in self._days),
            "summaries": sum(len(day.summaries) for day in self._days),
            "history_words": len(self._overall.history.split()),
            "portrait_words": len(self._overall.personality.split()),
            "counts": counts_with(_ALWAYS, self._counts),
        }

    def state(self) -> State:
        """Return days, vectors, portrait, digest and counters."""
        return {
            "days": [day.state() for day in self._days],
            "index": self._index.state(),
            "history": self._overall.history,
            "personality": self._overall.personality,
            "user": self._user,
            "speakers": list(self._speakers),
            "counts": counter_state(self._counts),
        }

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._days = [Day.from_state(entry) for entry in state["days"]]
        self._entries = entries_of(self._days)
        self._index.load_state(state["index"])
        self._overall = Overall(state["history"], state["personality"])
        self._user, self._speakers = state["user"], list(state["speakers"])
        self._counts = counter_from(state["counts"])


def _summary(unit: Unit, number: int, part: DayPart, summary: DaySummary) -> BankEntry:
    turn_ids = tuple(turn.turn_id for turn in part.turns)
    return BankEntry(
        f"{unit.unit_id}#summary_{number}", part.turns[0].date_time, summary.text, turn_ids, is_summary=True
    )


def _counted(role: str, made: DaySummary) -> Counter[str]:
    return Counter({f"fallback.{role}": int(made.fallback), f"cut.{role}": int(made.was_cut)})
