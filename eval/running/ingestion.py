"""Writing one conversation into one memory, from its last snapshot on.

``prepare`` of up to ``schedule.prepare_ahead`` units runs before their turn to be written; they are written in order.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from eval.running.progress import ProgressListener
from eval.running.schedule import Schedule
from eval.running.timing import Clock, ConversationClock
from eval.runs.records import ConversationRecord
from eval.runs.snapshots import Snapshot, Snapshots
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import MemorySystem, resume_memory
from memsys.protocol_checks import finished
from memsys.vocabulary import Sample, Unit

#: A snapshot that takes longer than this is not followed by the next one before twenty times as long has passed: a
#: whole memory is saved each time, and a large one would be saved for longer than it is written.
_QUICK_SECONDS = 0.25
_REST = 20


class ConversationIngestion:
    """Writes one conversation into one memory, from its last snapshot on.

    Its times leave out the loading of models and of the snapshot.
    """

    def __init__(
        self,
        sample: Sample,
        memory: MemorySystem,
        schedule: Schedule,
        snapshots: Snapshots,
        progress: ProgressListener,
        clock: Clock,
    ) -> None:
        self._conversation = sample.conversation
        self._memory, self._schedule, self._progress = memory, schedule, progress
        self._snapshots = snapshots
        self._prepare_seconds: list[float] = []
        self._write_seconds: list[float] = []
        self._seconds_before = self._consolidate_seconds = self._no_snapshot_before = 0.0
        self._clock = ConversationClock(clock)

    async def run(self) -> ConversationRecord:
        """Ingest what the snapshot does not hold yet, and consolidate."""
        units = self._memory.units(self._conversation)
        position, consolidated = await self._restore()
        self._progress.restored(sum(len(unit.turns) for unit in units[:position]))
        await self._write_all(units, position)
        if not consolidated:
            call_scope.set(CallScope("consolidate"))
            with self._clock.operation() as watch:
                await finished(self._memory, "consolidate", self._memory.consolidate())
                self._consolidate_seconds = watch.seconds()
            self._save(len(units), consolidated=True)
        return self._record(len(units))

    async def _restore(self) -> tuple[int, bool]:
        snapshot = self._snapshots.load(self._conversation.conversation_id)
        if snapshot is None:
            return 0, False
        self._memory.load_state(snapshot.memory)
        self._prepare_seconds = list(snapshot.prepare_seconds)
        self._write_seconds = list(snapshot.write_seconds)
        self._consolidate_seconds = snapshot.consolidate_seconds
        self._seconds_before = snapshot.ingest_seconds
        await resume_memory(self._memory)
        self._clock = ConversationClock(self._clock.clock)
        return snapshot.position, snapshot.consolidated

    def _save(self, position: int, *, consolidated: bool) -> None:
        snapshot = Snapshot(
            position=position,
            consolidated=consolidated,
            memory=dict(self._memory.state()),
            prepare_seconds=self._prepare_seconds[:position],
            write_seconds=self._write_seconds,
            consolidate_seconds=self._consolidate_seconds,
            ingest_seconds=self._seconds(),
        )
        self._snapshots.save(self._conversation.conversation_id, snapshot)

    def _checkpoint(self, position: int) -> None:
        """Save the memory on the way, unless that was done a short while ago and took long."""
        begun = self._clock.clock()
        if begun < self._no_snapshot_before:
            return
        self._save(position, consolidated=False)
        ended = self._clock.clock()
        if ended - begun > _QUICK_SECONDS:
            self._no_snapshot_before = ended + _REST * (ended - begun)

    def _seconds(self) -> float:
        return self._seconds_before + self._clock.seconds()

    async def _write_all(self, units: Sequence[Unit], position: int) -> None:
        ahead: deque[asyncio.Task[tuple[Any, float]]] = deque()
        upcoming = iter(units[position:])
        try:
            for done, unit in enumerate(units[position:], start=position + 1):
                while len(ahead) < max(self._schedule.prepare_ahead, 1) and (following := next(upcoming, None)):
                    ahead.append(asyncio.create_task(self._prepare(following)))
                prepared, seconds = await ahead.popleft()
                self._prepare_seconds.append(seconds)
                await self._write(unit, prepared)
                every = self._schedule.checkpoint_every
                if every and done % every == 0 and done < len(units):
                    self._checkpoint(done)
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _prepare(self, unit: Unit) -> tuple[Any, float]:
        call_scope.set(CallScope("prepare", unit.unit_id))
        with self._clock.operation() as watch:
            prepared = await finished(self._memory, "prepare", self._memory.prepare(unit))
            seconds = watch.seconds()
        return prepared, seconds

    async def _write(self, unit: Unit, prepared: Any) -> None:
        call_scope.set(CallScope("write", unit.unit_id))
        with self._clock.operation() as watch:
            await finished(self._memory, "write", self._memory.write(unit, prepared))
            self._write_seconds.append(watch.seconds())
        self._progress.wrote(len(unit.turns), self._write_seconds[-1])

    def _record(self, units: int) -> ConversationRecord:
        return ConversationRecord(
            conversation_id=self._conversation.conversation_id,
            turns=len(self._conversation.turns),
            units=units,
            ingest_seconds=self._seconds(),
            prepare_seconds=_rounded(self._prepare_seconds),
            write_seconds=_rounded(self._write_seconds),
            consolidate_seconds=self._consolidate_seconds,
            statistics=dict(self._memory.statistics()),
        )


def _rounded(seconds: Sequence[float]) -> list[float]:
    return [round(value, 6) for value in seconds]
