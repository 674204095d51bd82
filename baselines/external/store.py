"""The interface between a memory of the harness and one that is written for no harness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from memsys.vocabulary import Json, Turn

#: What says from which turns a result came.
Traced = Literal["ids", "text", "none"]


@dataclass(frozen=True, slots=True)
class Item:
    """One addition: a turn, or the turns of a session.

    Attributes:
        key: unique in its conversation; an added text that can carry one id carries this one.
        turns: in order.
        texts: one per turn, as the run's turn format writes it.
        user: the speaker who counts as the user; messages of others have the role ``assistant``.
    """

    key: str
    turns: tuple[Turn, ...]
    texts: tuple[str, ...]
    user: str

    @property
    def date(self) -> str:
        """Date of the first turn, as the data set writes it."""
        return self.turns[0].date_time

    @property
    def text(self) -> str:
        """Text of all turns, a line each."""
        return "\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Found:
    """One search result.

    Attributes:
        text: its content.
        score: as the memory gives it; ``None`` where it gives none.
        memory_id: the memory's own id; empty where there is none.
        sources: ids that say what the result was made from: of turns, items, or what ``add`` returned.
    """

    text: str
    score: float | None = None
    memory_id: str = ""
    sources: tuple[str, ...] = ()


class Store(Protocol):
    """A memory of one conversation that is written for no harness."""

    async def open(self, lent: Mapping[str, Json]) -> None:
        """Make the memory empty.

        Args:
            lent: address, key, name and dimension of the run's models; empty where they are not asked for.

        Raises:
            MemsysError: it cannot be reached or made.
        """

    async def add(self, item: Item) -> Sequence[str]:
        """Write one item; returns the ids that the memory gave to what it stored, none where it says nothing."""

    async def settle(self) -> None:
        """Wait until everything that was added can be found."""

    async def search(self, query: str, k: int) -> Sequence[Found]:
        """Find at most ``k`` memories for a query, best first."""

    def statistics(self) -> Mapping[str, Json]:
        """Return what the memory says of itself."""

    async def close(self) -> None:
        """Release what it holds."""


@dataclass(slots=True)
class Sources:
    """Turns that search results came from, by the ids that they name or by the text that was added.

    Attributes:
        turns: item key, turn id, or an id that ``add`` returned -> ids of turns.
        texts: text as it was added -> ids of turns.
    """

    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def added(self, item: Item, given: Sequence[str]) -> None:
        """Record what an item was made of and which ids the memory returned for it."""
        ids = tuple(turn.turn_id for turn in item.turns)
        self.turns[item.key] = ids
        self.turns.update({turn_id: (turn_id,) for turn_id in ids})
        for key in given:  # an id that comes again is a memory that was changed: it has both sources
            known = () if key == item.key or key in ids else self.turns.get(key, ())
            self.turns[key] = tuple(dict.fromkeys((*known, *ids)))
        self.texts[_plain(item.text)] = ids
        self.texts.update({_plain(text): (turn_id,) for text, turn_id in zip(item.texts, ids, strict=True)})

    def trace(self, found: Found) -> tuple[Traced, tuple[str, ...]]:
        """Return what says from which turns a result came, and their ids; none where nothing says so."""
        named = [turn for key in (*found.sources, found.memory_id) for turn in self.turns.get(key, ())]
        by_text = () if named else self.texts.get(_plain(found.text), ())
        return "ids" if named else "text" if by_text else "none", tuple(dict.fromkeys(named or by_text))


def _plain(text: str) -> str:
    return " ".join(text.split())
