"""How often a memory is saved while it is written: every so many units, less often where saving takes long."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from eval.running.ingestion import ConversationIngestion
from eval.running.schedule import Schedule
from eval.runs.snapshots import Snapshot
from memsys.protocol import BaseMemory
from memsys.vocabulary import Conversation, Retrieval, Sample, Turn, Unit
from tests.unit.eval.running.test_runner import Quiet

#: Seconds that each write takes on the clock of the test.
WRITE = 1.0


class Machine:
    """A clock that only writing and saving move."""

    def __init__(self, save: float) -> None:
        self.now, self._save = 0.0, save
        self.saved: list[int] = []

    def clock(self) -> float:
        return self.now

    def load(self, conversation_id: str) -> None:
        return None

    def save(self, conversation_id: str, snapshot: Snapshot) -> None:
        self.now += self._save
        self.saved.append(snapshot.position)


class Memory(BaseMemory):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def write(self, unit: Unit, prepared: Any) -> None:
        self._machine.now += WRITE

    async def retrieve(self, query: str) -> Retrieval:
        raise AssertionError("nothing is asked")

    def state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        raise AssertionError("nothing was saved")


@pytest.mark.parametrize(
    ("save", "positions"),
    [
        (0.25, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]),
        (1.0, [10, 30, 50, 70, 90, 100]),  # saved until second 11, next not before 31, which is after turn 30
        (4.0, [10, 90, 100]),  # saved until second 14, next not before 94, which is after turn 90
    ],
)
def test_saving_that_takes_long_is_done_less_often(save: float, positions: list[int]) -> None:
    turns = tuple(Turn(f"t{n}", "s", "A", "text", "") for n in range(100))
    machine = Machine(save)
    sample = Sample(Conversation("c", turns), (), {})
    ingest = ConversationIngestion(
        sample,
        Memory(machine),
        Schedule(checkpoint_every=10),
        machine,
        Quiet(),
        machine.clock,  # type: ignore[arg-type]
    )
    asyncio.run(ingest.run())
    assert machine.saved == positions
