"""Storage outside the main context: recall storage, with every message, and archival storage, with notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import PagedSearchRules
from memsys.dates import parse_date
from memsys.embedding.contract import Embedder, Vectors
from memsys.index.bm25 import BM25Index
from memsys.index.vector import VectorIndex
from memsys.vocabulary import Hit


@dataclass(frozen=True, slots=True)
class MemGptRecord:
    """A turn in recall storage, or a note in archival storage.

    Attributes:
        record_id: unique within the conversation.
        date: of the session, as the data set writes it.
        text: the turn in the run's format, or the note.
        turn_ids: the turns it came from.
    """

    record_id: str
    date: str
    text: str
    turn_ids: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The line that the agent sees."""
        return TEXTS("found", date=self.date, text=self.text) if self.date else self.text

    def hit(self, score: float) -> Hit:
        """Return the record as a retrieved memory."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.record_id)

    def state(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "MemGptRecord":
        """Make the record that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A page of results, best first, with their scores.

    Attributes:
        found: results of this page.
        total: results on all pages.
        number: of the page, from 0.
        size: results of a full page.
    """

    found: tuple[tuple[MemGptRecord, float], ...]
    total: int
    number: int
    size: int

    @property
    def shown(self) -> str:
        """The text that the agent sees: where in the results it is, and the results."""
        if not self.found:
            return TEXTS("no_results", page=self.number, total=self.total)
        first, pages = self.number * self.size + 1, -(-self.total // self.size)
        last = first + len(self.found) - 1
        head = TEXTS("page_head", first=first, last=last, total=self.total, page=self.number, pages=pages - 1)
        return "\n".join([head, *(record.shown for record, _ in self.found)])


class ArchivalStorage:
    """Notes, found by the cosine of their vectors with the query's.

    Args:
        embedder: of the run.
        page_size: results of a page.

    Attributes:
        records: by id, oldest first.
    """

    def __init__(self, embedder: Embedder, page_size: int) -> None:
        self._embedder, self._page_size = embedder, page_size
        self._index = VectorIndex(embedder.dimension)
        self.records: dict[str, MemGptRecord] = {}

    def add(self, records: Sequence[MemGptRecord], vectors: Vectors) -> None:
        """Append records with their vectors, one row each."""
        self._index.add([record.record_id for record in records], vectors)
        self.records |= {record.record_id: record for record in records}

    async def search(self, query: str, number: int) -> ResultPage:
        """Find a page of the records most similar to the query."""
        first, total = number * self._page_size, len(self.records)
        if first >= total:
            return ResultPage((), total, number, self._page_size)
        found = (await self.ranked(query, first + self._page_size))[first:]
        return ResultPage(tuple(found), total, number, self._page_size)

    async def ranked(self, query: str, most: int) -> list[tuple[MemGptRecord, float]]:
        """Rank the records by their similarity to the query, so many at most."""
        vector = (await self._embedder.embed([query]))[0]
        return [(self.records[name], score) for name, score in self._index.search(vector, most)]

    def state(self) -> dict[str, Any]:
        """Return records and vectors."""
        return {"records": [record.state() for record in self.records.values()], "index": self._index.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.records = {each["record_id"]: MemGptRecord.from_state(each) for each in state["records"]}
        self._index.load_state(state["index"])


class RecallStorage:
    """Every message that was ever queued; only turns of the conversation are searched.

    Args:
        embedder: of the run.
        rules: how turns are searched.

    Attributes:
        turns: records of turns, with vectors where they are searched by cosine.
        others: further messages that the queue had: calls, results and alerts.
    """

    def __init__(self, embedder: Embedder, rules: PagedSearchRules) -> None:
        k1, b = rules.bm25
        self._rules = rules
        self._words = BM25Index(k1=k1, b=b)
        self.turns = ArchivalStorage(embedder, rules.page_size)
        self.unindexed: dict[str, MemGptRecord] = {}
        self.others: list[QueuedMessage] = []

    def __len__(self) -> int:
        return len(self.records) + len(self.others)

    @property
    def records(self) -> Mapping[str, MemGptRecord]:
        """Records of turns by turn id, oldest first."""
        return self.turns.records if self._rules.recall == "embedding" else self.unindexed

    def add(self, records: Sequence[MemGptRecord], vectors: Vectors | None) -> None:
        """Append turns; vectors, one row each, are needed for the search by cosine alone."""
        if vectors is not None:
            self.turns.add(records, vectors)
            return
        self.unindexed |= {record.record_id: record for record in records}
        if self._rules.recall == "bm25":
            self._words.add([record.record_id for record in records], [record.text for record in records])

    async def search(self, query: str, number: int) -> ResultPage:
        """Find a page of turns; by substring and by BM25 only those that match, by cosine all are ranked."""
        if self._rules.recall == "embedding":
            return await self.turns.search(query, number)
        if self._rules.recall == "bm25":
            found = [(name, score) for name, score in self._words.search(query, len(self._words)) if score > 0]
            return self._page([(self.unindexed[name], score) for name, score in found], number)
        wanted = query.strip().lower()
        matching = [each for each in self.unindexed.values() if wanted and wanted in each.text.lower()]
        return self._page([(each, 0.0) for each in matching], number)

    def between(self, start: date, end: date, number: int) -> ResultPage:
        """Find a page of the turns of some days, oldest first; turns without a date are on none."""
        dated = [(each, parse_date(each.date)) for each in self.records.values()]
        return self._page([(each, 0.0) for each, day in dated if day and start <= day.date() <= end], number)

    def _page(self, found: Sequence[tuple[MemGptRecord, float]], number: int) -> ResultPage:
        size = self._rules.page_size
        return ResultPage(tuple(found[number * size : (number + 1) * size]), len(found), number, size)

    def state(self) -> dict[str, Any]:
        """Return turns, their vectors and the other messages; the keyword index follows from the turns."""
        return {
            "turns": self.turns.state(),
            "unindexed": [record.state() for record in self.unindexed.values()],
            "others": [message.state() for message in self.others],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.turns.load_state(state["turns"])
        self.unindexed = {}
        self._words.load_state({"ids": [], "texts": []})
        self.add([MemGptRecord.from_state(each) for each in state["unindexed"]], None)
        self.others = [QueuedMessage.from_state(each) for each in state["others"]]
