"""The functions that the agent may call: what they need, what they do, and what they return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from baselines.memgpt.core import CoreMemory, FunctionFailedError
from baselines.memgpt.reading import FunctionCall
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import SEARCHES, SEND, AgentRules, FunctionName
from baselines.memgpt.storage import ArchivalStorage, MemGptRecord, RecallStorage, ResultPage
from memsys.dates import parse_date
from memsys.embedding.contract import Embedder
from memsys.llm.values import whole_number

#: The greatest page number that is taken; a greater one is not a page of any storage.
_LAST_PAGE = 10**9


@dataclass(slots=True)
class CallChain:
    """The calls for one event or question.

    Attributes:
        date: of the event; empty for a question.
        offered: functions.
        read_only: functions that write are refused.
        sources: turns that the agent was shown for it: those of the event, and those it found since.
        made: identities of the calls that ran.
        found: records with their scores, by id, in the order in which they were found.
        calls: names of the functions that ran.
        failures: reasons of the calls that failed.
    """

    date: str
    offered: Sequence[FunctionName]
    read_only: bool = False
    sources: dict[str, None] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    found: dict[str, tuple[MemGptRecord, float]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def take(self, page: ResultPage) -> None:
        """Note what was found; a record found before keeps its place and score."""
        self.take_records(page.found)

    def take_records(self, found: Sequence[tuple[MemGptRecord, float]]) -> None:
        """Note records with their scores; one found before keeps its place and score."""
        for record, score in found:
            self.found.setdefault(record.record_id, (record, score))
            self.sources |= dict.fromkeys(record.turn_ids)

    @property
    def searched(self) -> bool:
        """Whether a search has run."""
        return any(name in SEARCHES for name in self.calls)


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """Result of a function; ``ok`` is false where the call failed."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class MemoryFunctions:
    """The functions on one conversation's memory.

    Attributes:
        core: core memory.
        recall: recall storage.
        archival: archival storage.
        embedder: for new notes.
        rules: of calls.
    """

    core: CoreMemory
    recall: RecallStorage
    archival: ArchivalStorage
    embedder: Embedder
    rules: AgentRules

    async def run(self, call: FunctionCall, chain: CallChain) -> FunctionResult:
        """Run a call; whatever is wrong with it is a failed result, which says what."""
        try:
            text = await self._checked(call, chain)
        except FunctionFailedError as error:
            chain.failures.append(error.reason)
            return FunctionResult(False, error.text[: self.rules.return_chars])
        chain.calls.append(call.name)
        chain.made.add(call.identity)
        return FunctionResult(True, text[: self.rules.return_chars])

    async def _checked(self, call: FunctionCall, chain: CallChain) -> str:
        if not call.name:
            raise FunctionFailedError("unreadable", TEXTS("unreadable"))
        if call.name not in chain.offered:
            known = ", ".join(chain.offered)
            raise FunctionFailedError("unknown_function", TEXTS("unknown_function", name=call.name, known=known))
        if self.rules.refuse_repeats and call.name != SEND and call.identity in chain.made:
            raise FunctionFailedError("repeated", TEXTS("repeated"))
        if call.name in SEARCHES:
            page = await self._search(call)
            chain.take(page)
            return page.shown
        if call.name != SEND:
            await self._edit(call, chain)
        return TEXTS("done")

    async def _search(self, call: FunctionCall) -> ResultPage:
        number = _page_number(call)
        if call.name == "conversation_search":
            return await self.recall.search(_text(call, "query"), number)
        if call.name == "archival_memory_search":
            return await self.archival.search(_text(call, "query"), number)
        return self.recall.between(_day(call, "start_date"), _day(call, "end_date"), number)

    async def _edit(self, call: FunctionCall, chain: CallChain) -> None:
        if chain.read_only:
            raise FunctionFailedError("read_only", TEXTS("read_only"))
        sources = tuple(chain.sources)
        if call.name == "core_memory_append":
            self.core.append(_text(call, "name"), _text(call, "content"), sources)
        elif call.name == "core_memory_replace":
            new = call.args.get("new_content", "")
            _wanted(call, "new_content", isinstance(new, str), TEXTS("a_text"))
            self.core.replace(_text(call, "name"), _text(call, "old_content"), new, sources)
        else:
            await self._insert(_text(call, "content"), chain.date, sources)

    async def _insert(self, content: str, day: str, sources: tuple[str, ...]) -> None:
        record = MemGptRecord(f"archival_{len(self.archival.records)}", day, content, sources)
        self.archival.add([record], await self.embedder.embed([content]))


def _wanted(call: FunctionCall, argument: str, fits: bool, wanted: str) -> None:
    if not fits:
        words = TEXTS("bad_argument", function=call.name, argument=argument, wanted=wanted)
        raise FunctionFailedError("bad_argument", words)


def _text(call: FunctionCall, argument: str) -> str:
    given = call.args.get(argument)
    text = given.strip() if isinstance(given, str) else ""
    _wanted(call, argument, bool(text), TEXTS("a_text"))
    return text


def _page_number(call: FunctionCall) -> int:
    """Read the page; the first one where none is given. A number may come as a text, and 1.0 is one."""
    given = call.args.get("page") or 0
    if isinstance(given, str):
        number = whole_number(given)
        given = -1 if number is None else number
    fits = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= _LAST_PAGE
    _wanted(call, "page", fits and given == int(given), TEXTS("a_page"))
    return int(given)


def _day(call: FunctionCall, argument: str) -> date:
    moment = parse_date(_text(call, argument))
    _wanted(call, argument, moment is not None, TEXTS("a_day"))
    assert moment is not None
    return moment.date()


def written_call(call: FunctionCall) -> Mapping[str, Any]:
    """Return a call as the queue keeps it: empty arguments are left out."""
    args = {key: value for key, value in call.args.items() if value != ""}
    return {"thought": call.thought, "function": call.name, "args": args}
