"""History of a package's memory: enough to write it again, and to trace each memory to its turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsys.protocol import State
from memsys.vocabulary import Json
from memsys.workers.messages import MemoryChange


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """Result of a write.

    Attributes:
        changes: of memories.
        replies: checksum of what the backbone said, in whatever order; ``None`` where a snapshot of older code does not
            say.
    """

    changes: Sequence[MemoryChange]
    replies: str | None = None

    def repeats(self, before: "WriteOutcome") -> bool:
        """Return whether the same replies led to the same changes."""
        known = None not in (self.replies, before.replies)
        return list(self.changes) == list(before.changes) and not (known and self.replies != before.replies)


@dataclass(slots=True)
class WriteHistory:
    """Units in the order they were written, what came of each write, and the end of the stream.

    Attributes:
        units: as workers are given them; see :func:`memsys.workers.messages.unit_message`.
        outcomes: of each unit.
        final: of the end of the stream; ``None`` before.
        lineage: memory -> turns it is made of, oldest first.
    """

    units: list[Mapping[str, Json]] = field(default_factory=list)
    outcomes: list[WriteOutcome] = field(default_factory=list)
    final: WriteOutcome | None = None
    lineage: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def write(self, unit: Mapping[str, Json], outcome: WriteOutcome) -> None:
        """Note a unit and what came of writing it."""
        self.units.append(unit)
        self.outcomes.append(outcome)
        self._follow(outcome.changes, [turn["turn_id"] for turn in unit["turns"]])

    def finish(self, outcome: WriteOutcome) -> None:
        """Note the end of the stream. What is made then is made of all turns."""
        self.final = outcome
        self._follow(outcome.changes, [turn["turn_id"] for unit in self.units for turn in unit["turns"]])

    @property
    def changes(self) -> list[MemoryChange]:
        """All changes so far, in their order."""
        ends = [self.final] if self.final is not None else []
        return [one for outcome in (*self.outcomes, *ends) for one in outcome.changes]

    def _follow(self, changes: Sequence[MemoryChange], turn_ids: Sequence[str]) -> None:
        for one in changes:
            if one.change == "delete":
                self.lineage.pop(one.memory_id, None)
                continue
            before = self.lineage.get(one.memory_id, ()) if one.change == "update" else ()
            self.lineage[one.memory_id] = tuple(dict.fromkeys((*before, *turn_ids)))

    def state(self) -> State:
        """Return JSON values from which :meth:`from_state` makes an equal history."""
        return {
            "units": list(self.units),
            "changes": [_rows(outcome.changes) for outcome in self.outcomes],
            "replies": [outcome.replies for outcome in self.outcomes],
            "final": None if self.final is None else _rows(self.final.changes),
            "final_replies": None if self.final is None else self.final.replies,
        }

    @classmethod
    def from_state(cls, state: State) -> "WriteHistory":
        """Make the history that :meth:`state` described."""
        history = cls()
        replies = state.get("replies", [None] * len(state["units"]))  # older snapshots have none
        for unit, rows, said in zip(state["units"], state["changes"], replies, strict=True):
            history.write(unit, WriteOutcome(_changes(rows), said))
        if state["final"] is not None:
            history.finish(WriteOutcome(_changes(state["final"]), state.get("final_replies")))
        return history


def _rows(changes: Sequence[MemoryChange]) -> list[list[str]]:
    return [[one.memory_id, one.change] for one in changes]


def _changes(rows: Sequence[Sequence[Json]]) -> list[MemoryChange]:
    return [MemoryChange(memory_id, change) for memory_id, change in rows]
