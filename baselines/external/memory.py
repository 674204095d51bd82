"""The memory of one conversation over a :class:`~baselines.external.store.Store`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from baselines.external.config import ExternalConfig
from baselines.external.store import Found, Item, Sources, Store
from memsys.protocol import BaseMemory, Parts, Prepared, State
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Hit, Retrieval, Turn, Unit


class ExternalMemory(BaseMemory):
    """A memory that keeps its own state; a snapshot is what was added, and is added again to restore it."""

    def __init__(self, config: ExternalConfig, parts: Parts, store: Store) -> None:
        self._config, self._parts, self._store = config, parts, store
        self._items: list[Item] = []
        self._ids: list[list[str]] = []
        self._sources = Sources()
        self._open = self._settled = False

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per turn or per session, as ``unit`` says."""
        if self._config.unit == "turn":
            groups: list[tuple[Turn, ...]] = [(turn,) for turn in conversation.turns]
        else:
            groups = sessions_of(conversation.turns)
        return [Unit(f"item-{number}", turns, conversation) for number, turns in enumerate(groups, 1)]

    async def write(self, unit: Unit, prepared: Prepared) -> None:
        """Add the unit's turns."""
        user = unit.conversation.user if unit.conversation else unit.turns[0].speaker
        await self._add(Item(unit.unit_id, unit.turns, tuple(self._text(turn) for turn in unit.turns), user))

    async def consolidate(self) -> None:
        """Wait until everything can be found."""
        await self._settle()

    async def retrieve(self, query: str) -> Retrieval:
        """Search; results are traced to turns by the ids that they name, else by their text."""
        await self._settle()
        found = list(await self._store.search(query, self._config.k))[: self._config.k]
        hits = tuple(self._hit(one, rank) for rank, one in enumerate(found, 1))
        traced = all(hit.turn_ids for hit in hits)
        return Retrieval(hits, "\n".join(hit.text for hit in hits), traced=traced)

    def state(self) -> State:
        """Return what was added, with the ids that came back."""
        items = [
            {
                "key": item.key,
                "turns": [asdict(turn) for turn in item.turns],
                "texts": list(item.texts),
                "user": item.user,
            }
            for item in self._items
        ]
        return {"items": items}

    def load_state(self, state: State) -> None:
        """Take what was added; :meth:`resume` adds it again."""
        self._items = [
            Item(each["key"], tuple(Turn(**turn) for turn in each["turns"]), tuple(each["texts"]), each["user"])
            for each in state["items"]
        ]

    async def resume(self) -> None:
        """Add again what a snapshot holds, to the empty memory."""
        items, self._items = self._items, []
        for item in items:
            await self._add(item)

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of additions, how results were traced to turns, and what the memory says of itself."""
        return {
            "added": len(self._items),
            "named_ids": sum(bool(ids) for ids in self._ids),
            "traced": dict(self._sources.counts),
            **({"memory": dict(own)} if (own := self._store.statistics()) else {}),
        }

    async def close(self) -> None:
        """Close the store."""
        if self._open:
            await self._store.close()

    async def _add(self, item: Item) -> None:
        await self._opened()
        ids = [str(each) for each in await self._store.add(item)]
        self._sources.added(item, ids)
        self._items.append(item)
        self._ids.append(ids)
        self._settled = False

    async def _opened(self) -> None:
        if not self._open:
            self._open = True
            await self._store.open()

    async def _settle(self) -> None:
        await self._opened()
        if not self._settled:
            await self._store.settle()
            self._settled = True

    def _text(self, turn: Turn) -> str:
        line = self._parts.turn_format.render(turn)
        return f"[{turn.date_time}] {line}" if turn.date_time and self._config.dates == "text" else line

    def _hit(self, found: Found, rank: int) -> Hit:
        score = 1.0 / rank if found.score is None else found.score
        return Hit(found.text, score, self._sources.trace(found), found.memory_id)
