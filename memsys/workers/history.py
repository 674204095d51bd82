"""What was written into a package's memory: enough to write it again, and to say which turns each memory is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsys.protocol import State
from memsys.vocabulary import Json
from memsys.workers.messages import MemoryChange


@dataclass(slots=True)
class WriteHistory:
    """Units in the order they were written, what each write changed, and the end of the stream.

    Attributes:
        units: as workers are given them; see :func:`memsys.workers.messages.unit_message`.
        changes: of each unit.
        final: changes made when the stream had ended; ``None`` before.
        lineage: memory -> turns it is made of, oldest first.
    """

    units: list[Mapping[str, Json]] = field(default_factory=list)
    changes: list[Sequence[MemoryChange]] = field(default_factory=list)
    final: Sequence[MemoryChange] | None = None
    lineage: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def write(self, unit: Mapping[str, Json], changes: Sequence[MemoryChange]) -> None:
        """Note a unit and what writing it changed."""
        self.units.append(unit)
        self.changes.append(changes)
        self._follow(changes, [turn["turn_id"] for turn in unit["turns"]])

    def finish(self, changes: Sequence[MemoryChange]) -> None:
        """Note the end of the stream. What is made then is made of all turns."""
        self.final = changes
        self._follow(changes, [turn["turn_id"] for unit in self.units for turn in unit["turns"]])

    def _follow(self, changes: Sequence[MemoryChange], turn_ids: Sequence[str]) -> None:
        for one in changes:
            if one.change == "delete":
                self.lineage.pop(one.memory_id, None)
                continue
            before = self.lineage.get(one.memory_id, ()) if one.change == "update" else ()
            self.lineage[one.memory_id] = tuple(dict.fromkeys((*before, *turn_ids)))

    def state(self) -> State:
        """JSON values from which :meth:`from_state` makes an equal history."""
        return {
            "units": list(self.units),
            "changes": [_rows(changes) for changes in self.changes],
            "final": None if self.final is None else _rows(self.final),
        }

    @classmethod
    def from_state(cls, state: State) -> "WriteHistory":
        """Make the history that :meth:`state` described."""
        history = cls()
        for unit, rows in zip(state["units"], state["changes"], strict=True):
            history.write(unit, _changes(rows))
        if state["final"] is not None:
            history.finish(_changes(state["final"]))
        return history


def _rows(changes: Sequence[MemoryChange]) -> list[list[str]]:
    return [[one.memory_id, one.change] for one in changes]


def _changes(rows: Sequence[Sequence[Json]]) -> list[MemoryChange]:
    return [MemoryChange(memory_id, change) for memory_id, change in rows]
