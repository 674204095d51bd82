"""A memory system that is a package: it runs in a worker, and memsys writes, asks and, after a kill, writes again."""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar
from urllib.parse import quote

from memsys.errors import WorkerEndedError, WorkerError
from memsys.llm.scope import CallScope, call_scope
from memsys.llm.usage import unmetered
from memsys.protocol import BaseMemory, Parts, Prepared, State
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Hit, Json, Retrieval, Unit
from memsys.workers.history import WriteHistory, WriteOutcome
from memsys.workers.messages import (
    StoredMemory,
    WorkerHit,
    read_changes,
    read_hits,
    read_memories,
    unit_message,
)
from memsys.workers.process import WorkerCommand
from memsys.workers.session import WorkerSession
from memsys.workers.settings import WorkerSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Characters of a log's name; disks take 255 bytes.
_LONGEST_NAME = 150


class PackageMemory(BaseMemory):
    """The memory of one conversation in a worker of its own.

    The worker is started by the first write or question. Its snapshot is the list of what was written: a worker that
    was killed, or a run that was, starts an empty one and writes all of it again, for which the package's calls have
    their replies in the cache. A replay that gets other replies, or changes other memories, than the first time is
    refused.

    Args:
        settings: how the worker is started and asked.
        parts: of the conversation.
    """

    def __init__(self, settings: WorkerSettings, parts: Parts) -> None:
        self._settings, self._parts = settings, parts
        self._history = WriteHistory()
        self._session: WorkerSession | None = None
        self._described: Mapping[str, Json] = {}
        self._lock = asyncio.Lock()

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return units of this many turns of one session."""
        size = self._settings.turns_per_write
        return [
            Unit(unit_id=session[first].turn_id, turns=session[first : first + size], conversation=conversation)
            for session in sessions_of(conversation.turns)
            for first in range(0, len(session), size)
        ]

    async def write(self, unit: Unit, prepared: Prepared) -> None:
        """Let the package add the unit.

        Raises:
            WorkerError: the worker raised, hangs, sent nonsense, or ended again and again.
            BackboneError: a call of the package failed.
        """
        message = unit_message(unit, self._parts.turn_format)

        async def add(session: WorkerSession) -> WriteOutcome:
            return await self._outcome(session, "add", {"unit": message}, CallScope("write", unit.unit_id))

        async with self._lock:
            self._history.write(message, await self._attempt(add))

    async def consolidate(self) -> None:
        """Tell the package that the stream has ended; raises as :meth:`write`."""
        async with self._lock:
            self._history.finish(await self._attempt(self._finish))

    async def _finish(self, session: WorkerSession) -> WriteOutcome:
        return await self._outcome(session, "finish", {}, CallScope("consolidate"))

    async def _outcome(
        self, session: WorkerSession, op: str, fields: Mapping[str, Json], scope: CallScope
    ) -> WriteOutcome:
        changes = read_changes(await session.perform(op, fields, scope), self._settings.name)
        return WriteOutcome(changes, session.replies)

    async def retrieve(self, query: str) -> Retrieval:
        """Let the package search; raises as :meth:`write`."""
        fields = {"query": query, "k": self._settings.k}
        scope = call_scope.get(CallScope("retrieve"))

        async def search(session: WorkerSession) -> list[WorkerHit]:
            return read_hits(await session.perform("retrieve", fields, scope), self._settings.name)

        async with self._lock:
            found = await self._attempt(search)
        return self._retrieval(found)

    async def export(self) -> list[StoredMemory]:
        """Return all memories as the package holds them; raises as :meth:`write`."""

        async def read(session: WorkerSession) -> list[StoredMemory]:
            return read_memories(await session.perform("export", {}, CallScope("retrieve")), self._settings.name)

        async with self._lock:
            return await self._attempt(read)

    def _retrieval(self, found: Sequence[WorkerHit]) -> Retrieval:
        origins = self._history.lineage
        hits = tuple(Hit(hit.text, hit.score, origins.get(hit.memory_id, ()), hit.memory_id) for hit in found)
        lines = [self._settings.render(hit.date, hit.text) for hit in found]
        return Retrieval(hits, "\n".join(lines), traced=self._described["lineage"] != "none")

    async def _attempt(self, step: Callable[[WorkerSession], Awaitable[T]]) -> T:
        """Take a step in an open worker; in a new one that is brought up to date if the worker has ended."""
        for restarts in range(self._settings.restarts):
            try:
                return await self._once(step)
            except WorkerEndedError as error:
                self._note(f"{error}; starting it again ({restarts + 1} of {self._settings.restarts})")
        return await self._once(step)

    def _note(self, message: str) -> None:
        """Say in the program's log and in the worker's, which stays with the run, what was done about an error."""
        logger.warning("%s", message)
        with self._command().log.open("a", encoding="utf-8") as log:
            log.write(f"memsys: {message}\n")

    async def _once(self, step: Callable[[WorkerSession], Awaitable[T]]) -> T:
        done = False
        try:
            result = await step(await self._open())
            done = True
        finally:
            if not done:
                await self.close()  # it may have done half of the step
        return result

    async def _open(self) -> WorkerSession:
        if self._session is None:
            settings = self._settings
            self._session = await WorkerSession.open(
                self._command(), settings.package_settings, self._parts, settings.proxy, settings.limits
            )
            said = self._session.description
            self._describe({name: getattr(said, name) for name in said.__slots__})
            with unmetered():  # these calls were counted when they were made
                await self._replay(self._session)
        return self._session

    def _describe(self, described: Mapping[str, Json]) -> None:
        """Note what the worker says of itself.

        Raises:
            WorkerError: it runs another package, or another version, than what was written so far.
        """
        before, now = (f"{one.get('package')} {one.get('version')}" for one in (self._described, described))
        if self._history.units and before != now:
            raise WorkerError(
                f"{self._settings.name}: conversation {self._parts.conversation_id} was begun with {before}, and "
                f"the worker runs {now} now: install {before} again, or delete the run directory and start the same "
                "command again"
            )
        self._described = described

    def _command(self) -> WorkerCommand:
        settings = self._settings
        place = self._parts.log_dir or Path(gettempdir()) / "memsys-logs"
        log = place / f"worker-{_file_name(self._parts.conversation_id)}.log"
        return WorkerCommand(settings.name, settings.interpreter, settings.worker, log)

    async def _replay(self, session: WorkerSession) -> None:
        """Write again what was written.

        Raises:
            WorkerError: the package made something else of it.
        """
        for unit, before in zip(self._history.units, self._history.outcomes, strict=True):
            name = str(unit["unit_id"])
            now = await self._outcome(session, "replay", {"unit": unit}, CallScope("write", name))
            self._check_same(now, before, f"unit {name}")
        if self._history.final is not None:
            self._check_same(await self._finish(session), self._history.final, "the end")

    def _check_same(self, now: WriteOutcome, before: WriteOutcome, where: str) -> None:
        if now.repeats(before):
            return
        what = "changed other memories" if list(now.changes) != list(before.changes) else "got other replies"
        raise WorkerError(
            f"{self._settings.name}: written again, {where} {what} than the first time; the replies must come from "
            "the cache (use_cache=true, the same cache_dir), or the package decides by chance or by the clock. Delete "
            "the run directory and start the same command again"
        )

    def statistics(self) -> Mapping[str, Json]:
        """Return package, version and lineage as the worker states them, and memories added, changed and deleted."""
        counts = Counter(one.change for one in self._history.changes)
        return {
            **self._described,
            "writes": len(self._history.units),
            "added": counts["add"],
            "updated": counts["update"],
            "deleted": counts["delete"],
            "memories": len(self._history.lineage),
        }

    def state(self) -> State:
        """Return what was written; see :class:`memsys.workers.history.WriteHistory`."""
        return {**self._history.state(), "described": dict(self._described)}

    def load_state(self, state: State) -> None:
        """Restore a snapshot; :meth:`resume`, or the next step, starts a worker and writes all of it again."""
        self._history = WriteHistory.from_state(state)
        self._described = dict(state["described"])

    async def resume(self) -> None:
        """Start a worker and write all of it again now; raises as :meth:`write`."""

        async def nothing(session: WorkerSession) -> None:
            """Do nothing: an open worker is up to date."""

        if self._history.units:
            async with self._lock:
                await self._attempt(nothing)

    async def close(self) -> None:
        """End the worker; the next write or question starts another. Safe to call twice."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _file_name(conversation_id: str) -> str:
    name = quote(conversation_id, safe="", errors="surrogatepass")
    digest = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{digest}"
