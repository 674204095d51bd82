"""State of the released agent: core memory, the queue, all messages, and notes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

from baselines.memgpt.code_messages import record_of, searched_text
from baselines.memgpt.core import CoreMemory
from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import CoreRules, PagedSearchRules
from baselines.memgpt.storage import ArchivalStorage, MemGptRecord
from memsys.embedding.contract import Embedder

#: Characters of a day, with which a time begins.
_DAY_CHARS = 10
#: Best notes of a query that the release keeps.
_KEPT_NOTES = 100


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of results: the records with their scores, and what the agent is shown."""

    found: tuple[tuple[MemGptRecord, float], ...]
    shown: str


@dataclass(slots=True)
class ReleasedStore:
    """The memory of a released agent.

    Attributes:
        core: core memory.
        archival: notes.
        rules: of searches.
        queue: messages of the main context, a summary of earlier ones among them.
        log: recall storage: every message that was queued.
        systems: how many system messages recall storage counts; each edit of core memory makes one.
        shown_counts: messages and notes as the system message tells them: at the last edit of core memory.
        total: messages that were ever queued.
        alerted: whether the agent was warned since the last eviction.
        summary: of the messages that were evicted; empty before the first eviction.
        kept: places of the notes found by a query, which are shown again whenever it comes again.
        time: of the latest event.
    """

    core: CoreMemory
    archival: ArchivalStorage
    rules: PagedSearchRules
    queue: list[QueuedMessage] = field(default_factory=list)
    log: list[QueuedMessage] = field(default_factory=list)
    systems: int = 1
    shown_counts: tuple[int, int] = (0, 0)
    total: int = 0
    alerted: bool = False
    summary: str = ""
    kept: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    time: str = ""

    @classmethod
    def empty(cls, core: CoreRules, search: PagedSearchRules, embedder: Embedder) -> "ReleasedStore":
        """Make the memory of a new agent."""
        return cls(CoreMemory(core), ArchivalStorage(embedder, search.page_size), search)

    def add(self, messages: Sequence[QueuedMessage]) -> None:
        """Queue messages and keep them in recall storage."""
        self.queue += messages
        self.log += messages
        self.total += len(messages)

    def rebuild(self) -> None:
        """Note the counts that the system message tells from now on."""
        self.shown_counts = (len(self.log) + self.systems, len(self.archival.records))
        self.systems += 1

    def search_recall(self, query: str, page: int) -> FoundPage:
        """Find the messages that hold the query word for word, whatever the case, oldest first."""
        wanted = query.lower()
        return self._page([n for n, text in self._searched() if wanted in text.lower()], page)

    def search_days(self, start: str, end: str, page: int) -> FoundPage:
        """Find the messages of some days, oldest first.

        Raises:
            ValueError: a day is not written ``YYYY-MM-DD``.
        """
        first, last = _day(start), _day(end)
        return self._page([n for n, _ in self._searched() if _between(first, self.log[n].date, last)], page)

    def _searched(self) -> list[tuple[int, str]]:
        texts = ((number, searched_text(message)) for number, message in enumerate(self.log))
        return [(number, text) for number, text in texts if text is not None]

    def _page(self, places: Sequence[int], page: int) -> FoundPage:
        size = self.rules.page_size
        chosen = places[page * size : page * size + size]
        lines = [
            TEXTS("found_message", date=self.log[n].date, sender=self.log[n].sender, text=searched_text(self.log[n]))
            for n in chosen
        ]
        return _shown([(record_of(self.log[n], n), 0.0) for n in chosen], lines, len(places), page, size)

    async def search_notes(self, query: str, page: int) -> FoundPage:
        """Find notes by cosine; the release counts those of the page alone, and knows no note newer than its query."""
        if query not in self.kept:
            found = await self.archival.ranked(query, _KEPT_NOTES)
            self.kept[query] = [(record.record_id, score) for record, score in found]
        size, known = self.rules.page_size, self.kept[query]
        start = page * size
        chosen = [(self.archival.records[name], score) for name, score in known[start : min(start + size, len(known))]]
        lines = [TEXTS("found_note", date=self.time, text=record.text) for record, _ in chosen]
        return _shown(chosen, lines, len(chosen), page, size)

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "core": self.core.state(),
            "archival": self.archival.state(),
            "queue": [message.state() for message in self.queue],
            "log": [message.state() for message in self.log],
            "systems": self.systems,
            "shown_counts": list(self.shown_counts),
            "total": self.total,
            "alerted": self.alerted,
            "summary": self.summary,
            "kept": {query: [list(one) for one in found] for query, found in self.kept.items()},
            "time": self.time,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.core.load_state(state["core"])
        self.archival.load_state(state["archival"])
        self.queue = [QueuedMessage.from_state(each) for each in state["queue"]]
        self.log = [QueuedMessage.from_state(each) for each in state["log"]]
        self.systems, self.total = int(state["systems"]), int(state["total"])
        messages, notes = state["shown_counts"]
        self.shown_counts, self.alerted, self.time = (int(messages), int(notes)), bool(state["alerted"]), state["time"]
        self.summary = state["summary"]
        self.kept = {query: [(name, score) for name, score in found] for query, found in state["kept"].items()}


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def _between(first: datetime, time: str, last: datetime) -> bool:
    try:
        return first <= _day(time[:_DAY_CHARS]) <= last
    except ValueError:
        return False


def _shown(
    found: Sequence[tuple[MemGptRecord, float]], lines: Sequence[str], total: int, page: int, size: int
) -> FoundPage:
    if not found:
        return FoundPage((), TEXTS("no_results", page=page, total=total))
    first = page * size + 1
    places = {"first": first, "last": first + len(found) - 1, "total": total}
    head = TEXTS("page_head", **places, page=page, pages=ceil(total / size) - 1)
    return FoundPage(tuple(found), f"{head} {json.dumps(lines)}")
