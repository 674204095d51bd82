"""The memory of one conversation over a :class:`~baselines.external.store.Store`."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, get_args

from baselines.external.config import ExternalConfig
from baselines.external.store import Item, Sources, Store, Traced
from memsys.errors import MemoryProtocolError
from memsys.llm.scope import CallScope, call_scope
from memsys.llm.usage import unmetered
from memsys.protocol import BaseMemory, Parts, Prepared, State
from memsys.proxy.lending import LentModels
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Hit, Retrieval, Turn, Unit

T = TypeVar("T")
logger = logging.getLogger(__name__)


class ExternalMemory(BaseMemory):
    """A memory that keeps its own state; a snapshot is what was added, and is added again to restore it.

    One that calls the run's models takes one step at a time, so that each call is booked with its unit or question.
    """

    def __init__(self, config: ExternalConfig, parts: Parts, store: Store) -> None:
        self._config, self._parts, self._store = config, parts, store
        self._items: list[Item] = []
        self._ids: list[list[str]] = []
        self._replies: list[str] = []
        self._sources = Sources()
        self._lent: LentModels | None = None
        self._lock = asyncio.Lock()
        self._open = self._settled = False
        self._other_replies = 0

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
        async with self._lock:
            await self._add(Item(unit.unit_id, unit.turns, tuple(self._text(turn) for turn in unit.turns), user))

    async def consolidate(self) -> None:
        """Wait until everything can be found."""
        async with self._lock:
            await self._settle(CallScope("consolidate"))

    async def retrieve(self, query: str) -> Retrieval:
        """Search; results are traced to turns by the ids that they name, else by their text; the trace counts each."""
        scope = call_scope.get(CallScope("retrieve"))
        async with self._lock:
            await self._settle(scope)
            lent = self._lent is not None
            found = await self._step(scope, self._store.search(query, self._config.k)) if lent else None
        found = list(await self._store.search(query, self._config.k) if found is None else found)[: self._config.k]
        origins = [self._sources.trace(one) for one in found]
        hits = tuple(
            Hit(one.text, 1.0 / rank if one.score is None else one.score, turns, one.memory_id)
            for rank, (one, (_, turns)) in enumerate(zip(found, origins, strict=True), 1)
        )
        counts = Counter(kind for kind, _ in origins)
        return Retrieval(
            hits,
            "\n".join(hit.text for hit in hits),
            trace={"traced": {kind: counts[kind] for kind in get_args(Traced)}},
            traced=not counts["none"],
        )

    def state(self) -> State:
        """Return what was added, with the ids that came back."""
        items = [
            {
                "key": item.key,
                "turns": [asdict(turn) for turn in item.turns],
                "texts": list(item.texts),
                "user": item.user,
                "replies": replies,
            }
            for item, replies in zip(self._items, self._replies, strict=True)
        ]
        return {"items": items}

    def load_state(self, state: State) -> None:
        """Take what was added; :meth:`resume` adds it again."""
        self._items = [
            Item(each["key"], tuple(Turn(**turn) for turn in each["turns"]), tuple(each["texts"]), each["user"])
            for each in state["items"]
        ]
        self._replies = [each["replies"] for each in state["items"]]

    async def resume(self) -> None:
        """Add again what a snapshot holds, to the empty memory; its calls were counted when they were made."""
        items, self._items = self._items, []
        before, self._replies = self._replies, []
        async with self._lock:
            with unmetered():
                for item in items:
                    await self._add(item)
        self._other_replies = sum(old != new for old, new in zip(before, self._replies, strict=True))
        if self._other_replies:
            logger.warning(
                "%s: written again, %d of %d additions got other replies of the model than the first time; "
                "with use_cache=true they get the same",
                self._config.name, self._other_replies, len(items),
            )  # fmt: skip

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of additions, and what the memory says of itself."""
        return {
            "added": len(self._items),
            "named_ids": sum(bool(ids) for ids in self._ids),
            **({"other_replies": self._other_replies} if self._other_replies else {}),
            **({"memory": dict(own)} if (own := self._store.statistics()) else {}),
        }

    async def close(self) -> None:
        """Close the store, then the proxy that it was given."""
        try:
            if self._open:
                await self._store.close()
        finally:
            if self._lent is not None:
                await self._lent.__aexit__()

    async def _add(self, item: Item) -> None:
        await self._opened()
        ids = [str(each) for each in await self._step(CallScope("write", item.key), self._store.add(item))]
        self._sources.added(item, ids)
        self._items.append(item)
        self._ids.append(ids)
        self._replies.append(self._lent.replies if self._lent is not None else "")
        self._settled = False

    async def _opened(self) -> None:
        if self._open:
            return
        self._open = True
        lent: dict[str, Any] = {}
        if self._config.lends:
            self._lent = await LentModels(self._config.name, self._parts, self._config.proxy_settings).__aenter__()
            lent = {**self._lent.access, "base_url": self._lent.url, "dimension": self._parts.embedder.dimension}
        await self._step(CallScope("write"), self._store.open(lent))

    async def _settle(self, scope: CallScope) -> None:
        await self._opened()
        if not self._settled:
            await self._step(scope, self._store.settle())
            self._settled = True

    async def _step(self, scope: CallScope, step: Coroutine[Any, Any, T]) -> T:
        """Take a step, to which the memory's calls of the run's models are booked.

        Raises:
            MemsysError: a call failed, or got no reply.
        """
        if self._lent is None:
            return await step
        self._lent.begin(scope)
        result = await self._lent.unless_failed(step)
        if self._lent.failure is not None:
            raise MemoryProtocolError(
                f"memory={self._config.name}: a request to the run's models got no reply, and the memory went on "
                f"without it: {self._lent.failure}"
            ) from self._lent.failure
        return result

    def _text(self, turn: Turn) -> str:
        line = self._parts.turn_format.render(turn)
        return f"[{turn.date_time}] {line}" if turn.date_time and self._config.dates == "text" else line
