"""Every reply of a backbone, stored under a hash of all that can change it.

A process reads all files when it opens the folder, and sees its own additions after that. ``shared`` is for jobs that
write at the same time, on one machine or on the shared disk of a cluster: what others have added is read whenever a
reply is not known yet, and a call is claimed before it is made, so that of all jobs one pays for it and all get the
same reply.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memsys.errors import BackboneError
from memsys.llm.cache_claims import CallClaims, Claim
from memsys.llm.cache_files import ReplyFiles
from memsys.llm.outcomes import is_kept
from memsys.vocabulary import Completion

#: Seconds between two looks for what other jobs have added: each costs one listing and one ``stat`` per job.
_REFRESH_SECONDS = 5.0
#: Seconds until one that waits for another's call tries again, at first and at most.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
#: Seconds of waiting after which the log says so: the other process may be stopped or hang.
_LONG_WAIT = 300.0

logger = logging.getLogger(__name__)


class ReplyCache:
    """Replies by key, on disk.

    Args:
        folder: made when the first reply is stored.
        shared: other processes write here at the same time: see their replies as they come, pay each call once.
    """

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.shared = shared
        self._files = ReplyFiles(folder)
        self._claims = CallClaims(folder)
        self._pending: dict[str, asyncio.Future[Completion]] = {}

    def __len__(self) -> int:
        return len(self._files)

    @property
    def corrupt(self) -> int:
        """Lines that could not be read and were left out."""
        return self._files.corrupt

    def get(self, key: str) -> Completion | None:
        """Look a reply up; an unreadable or altered row counts as ``corrupt`` and as absent."""
        return self._files.get(key)

    def put(self, key: str, reply: Completion) -> None:
        """Store a reply; see :meth:`memsys.llm.cache_files.ReplyFiles.put`.

        Raises:
            MemsysError: the disk is full or the folder cannot be written.
        """
        self._files.put(key, reply)

    async def fetch(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Give the stored reply, wait for an equal request in flight, or make the call and store its reply.

        Returns:
            The reply, and whether it came without a call of our own.
        """
        while True:
            known = self.get(key)
            if known is not None:
                return known, True
            pending = self._pending.get(key)
            if pending is None:
                return await self._lead(key, call)
            await asyncio.wait([pending])
            if not pending.cancelled():  # else the caller was cancelled, and another must call
                error = pending.exception()
                if error is not None:
                    raise type(error)(str(error)) from error  # of its own, since each of those that wait adds its place
                return pending.result(), True

    async def _lead(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Make a call for all tasks of this process that want it."""
        pending: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending[key] = pending
        try:
            reply, hit = await (self._claim_and_call(key, call) if self.shared else self._call(key, call))
            pending.set_result(reply)
        except BackboneError as error:
            pending.set_exception(error)
            pending.exception()  # retrieved: there may be no waiter
            raise
        finally:
            del self._pending[key]
            pending.cancel()  # nothing where it has a result
        return reply, hit

    async def _call(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        reply = await call()
        if is_kept(reply):
            self.put(key, reply)
        return reply, False

    async def _claim_and_call(self, key: str, call: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
        """Make a call that no other process makes, or take the reply of the one that does."""
        pause, said, began = _FIRST_PAUSE, False, time.monotonic()
        while True:
            self._files.refresh(after=_REFRESH_SECONDS)
            known = self.get(key)
            if known is not None:
                return known, True
            with self._claims.hold(key) as claim:
                if claim is not None:
                    return await self._call_under(claim, key, call)
            if not said and time.monotonic() - began > _LONG_WAIT:
                said = True
                logger.warning(
                    "reply cache %s: a call has waited %.0f s for a reply that another process is making; if that "
                    "process is suspended, end or resume it", self.folder, _LONG_WAIT,
                )  # fmt: skip
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _call_under(
        self, claim: Claim, key: str, call: Callable[[], Awaitable[Completion]]
    ) -> tuple[Completion, bool]:
        """Make a call that we hold the claim on, unless the previous holder has stored its reply by now."""
        if claim.begun():
            self._files.refresh()
            known = self.get(key)
            if known is not None:
                return known, True
        else:
            claim.begin()
        made = await self._call(key, call)
        await asyncio.to_thread(self._files.flush)
        return made

    def close(self) -> None:
        """Close the files; a later :meth:`put` opens another."""
        self._files.close()
        self._claims.close()
