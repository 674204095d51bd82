"""Calls that are sent together as one batch of OpenAI's protocol, at a lower price and with replies within a day.

Requests gather until none has come for a while; then their file is uploaded and a batch of it created. What a batch
asks is written to a file before it is created, with a name that the batch carries. So a run that is killed while it
waits, even between the creation of a batch and the reply that says so, finds the same batch again and pays nothing
twice; and so does another run with the same cache of replies that asks the same.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from memsys.errors import BackboneError, BackboneUnusableError
from memsys.files import replace_file
from memsys.llm.engines.contract import MOST_REQUESTS, Answered, BatchTimes
from memsys.llm.refusals import TransientServerError
from memsys.llm.scope import CallScope
from memsys.rows import record_from
from memsys.unique_names import segment_name
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

#: Phases whose calls do not wait for each other: questions, once the memory is written, and verdicts.
_PHASES = frozenset({"answer", "judge"})
#: Bytes of a batch's file, below the 200 MB that OpenAI allows.
_MOST_BYTES = 100_000_000
_WINDOW = "24h"
#: States of a batch that was stopped on purpose: no other one is sent for its requests in the same run.
_CANCELLED = frozenset({"cancelled", "canceled"})
_ENDED = _CANCELLED | {"completed", "expired"}
#: Polls in a row that may fail before the run stops; the batch continues meanwhile.
_MOST_FAILURES = 20
_MARK = "memsys"
#: What to do about a server whose batches cannot be used.
AT_ONCE = "backbone/engine=openai asks at once instead"
_RESULT_BYTES = 2_000_000_000


class BatchPages(Protocol):
    """The pages of one server, as :class:`memsys.llm.transport.Transport` reaches them."""

    async def page(self, path: str, body: Json = None, *, file: bytes = b"", largest: int = 0) -> bytes:
        """Get a page, post a body to it, or upload a file to it.

        Raises:
            TransientServerError: it failed on the way.
            BackboneError: the server refuses.
        """


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch as its file has it.

    Attributes:
        name: that the batch carries in its metadata.
        server: base URL.
        keys: of its requests.
        batch_id: that the server gave it; empty until it did.
        cancelled: it was cancelled, and the run that waited for it has ended with that error.
    """

    name: str
    server: str
    keys: list[str]
    batch_id: str = ""
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class _Gathered:
    path: str
    line: bytes


class Batches:
    """Batches of one server. Belongs to one event loop.

    Args:
        folder: of the files, which runs that share a cache share too.
        server: base URL.
        pages: of the server.
        times: when a batch is sent, and how often it is asked for.
    """

    def __init__(self, folder: Path, server: str, pages: BatchPages, times: BatchTimes) -> None:
        self._folder, self._server, self._pages, self._times = folder, server, pages, times
        self._waiting: dict[str, asyncio.Future[Answered]] = {}
        self._gathered: dict[str, _Gathered] = {}
        self._gathering: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: set[str] = set()
        self._delivered: set[str] = set()
        self._early: dict[str, Answered] = {}  # replies of a batch found again that no call has asked for yet
        self._known: dict[str, SentBatch] | None = None
        self._last = 0.0

    @staticmethod
    def takes(scope: CallScope) -> bool:
        """Return whether a call of this origin may wait for a batch."""
        return scope.phase in _PHASES and not scope.fresh

    async def answer(self, path: str, data: bytes, key: str) -> Answered:
        """Get a reply by a batch.

        Args:
            path: below the base URL.
            data: body of the request.
            key: of the call.

        Raises:
            BackboneError: the batch failed as a whole, or its server cannot be reached.
        """
        if (early := self._early.pop(key, None)) is not None:
            return early
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = asyncio.get_running_loop().create_future()
            sent = None if key in self._delivered else self._sent().get(key)
            if sent is None:
                self._gather(path, data, key)
            elif sent.name not in self._followed:
                self._followed.add(sent.name)
                name = sent.batch_id or sent.name
                logger.warning("waiting for the batch %s of %d requests, sent before", name, len(sent.keys))
                self._start(self._follow(sent), sent.keys)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._waiting.pop(key, None)

    async def close(self) -> None:
        """Wait for nothing any longer; batches continue at the server."""
        tasks = [*self._tasks, *([self._gathering] if self._gathering else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _gather(self, path: str, data: bytes, key: str) -> None:
        line = b'{"custom_id": %s, "method": "POST", "url": %s, "body": %s}\n' % (
            json.dumps(key).encode(), json.dumps(f"/v1{path}").encode(), data,
        )  # fmt: skip
        self._gathered[key] = _Gathered(path, line)
        self._last = asyncio.get_running_loop().time()
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.create_task(self._send_when_quiet())

    async def _send_when_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            rest = self._last + self._times.quiet_s - loop.time()
            if rest <= 0 or len(self._gathered) >= MOST_REQUESTS:
                break
            await asyncio.sleep(min(rest, 1.0))
        gathered, self._gathered = self._gathered, {}
        for path in sorted({each.path for each in gathered.values()}):
            for part in _parts({key: each.line for key, each in gathered.items() if each.path == path}):
                self._start(self._submit(path, part), list(part))

    def _start(self, work: Any, keys: Sequence[str]) -> None:
        async def run() -> None:
            try:
                await work
            except (BackboneError, TransientServerError) as error:
                self._fail(keys, error)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                what = f"the server's pages of batches are not like OpenAI's ({type(error).__name__}: {error})"
                self._fail(keys, BackboneUnusableError(f"{what}; {AT_ONCE}"))

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(self, keys: Sequence[str], error: Exception) -> None:
        for key in keys:
            if (future := self._waiting.get(key)) is not None and not future.done():
                future.set_exception(type(error)(str(error)))
                future.exception()  # there may be no waiter any longer

    async def _submit(self, path: str, lines: Mapping[str, bytes]) -> None:
        """Send a batch: its file, then what asks for it; and wait for its replies."""
        sent = SentBatch(segment_name(""), self._server, list(lines))
        self._followed.add(sent.name)
        uploaded = json.loads(await self._pages.page("/files", file=b"".join(lines.values())))
        self._write(sent)
        wanted = {
            "input_file_id": uploaded["id"],
            "endpoint": f"/v1{path}",
            "completion_window": _WINDOW,
            "metadata": {_MARK: sent.name},
        }
        try:
            made = json.loads(await self._pages.page("/batches", wanted))
        except TransientServerError:
            made = await self._look(sent)  # it may have been created all the same
            if made is None:
                self._forget(sent)
                raise
        except BackboneError:
            self._forget(sent)
            raise
        sent = replace(sent, batch_id=str(made["id"]))
        self._write(sent)
        logger.warning(
            "batch %s: %d requests; replies come within a day; if this command ends, run it again to continue waiting",
            sent.batch_id, len(sent.keys),
        )  # fmt: skip
        await self._follow(sent)

    async def _look(self, sent: SentBatch) -> Mapping[str, Any] | None:
        """Return the batch of this name, if the server has it."""
        found = json.loads(await self._pages.page("/batches?limit=100"))
        named = (each for each in found.get("data", ()) if (each.get("metadata") or {}).get(_MARK) == sent.name)
        return next(named, None)

    async def _follow(self, sent: SentBatch) -> None:
        """Wait until a batch has ended, and hand out its replies."""
        if not sent.batch_id:
            found = await self._look(sent)
            if found is None:  # killed before it was created
                self._forget(sent)
                raise TransientServerError(f"the batch {sent.name} was not created")
            sent = replace(sent, batch_id=str(found["id"]))
            self._write(sent)
        ended = await self._ended(sent)
        if ended["status"] not in _ENDED:
            self._forget(sent)
            raise BackboneUnusableError(
                f"the server refuses the batch {sent.batch_id}: {json.dumps(ended.get('errors'))[:600]}; {AT_ONCE}"
            )
        for kind in ("output_file_id", "error_file_id"):
            if ended.get(kind):
                self._deliver(await self._pages.page(f"/files/{ended[kind]}/content", largest=_RESULT_BYTES))
        self._delivered.update(sent.keys)
        if ended["status"] in _CANCELLED and not sent.cancelled:
            self._write(replace(sent, cancelled=True))
            raise BackboneUnusableError(
                f"the batch {sent.batch_id} was cancelled; run the same command again to send its open requests in a "
                "new one"
            )
        what = f"the batch {sent.batch_id} is {ended['status']} without this reply"
        self._fail(sent.keys, TransientServerError(what))

    async def _ended(self, sent: SentBatch) -> Mapping[str, Any]:
        """Ask for a batch until it is over."""
        failures = 0
        while True:
            try:
                found: Mapping[str, Any] = json.loads(await self._pages.page(f"/batches/{sent.batch_id}"))
                if found["status"] in {*_ENDED, "failed"}:
                    return found
                failures = 0
            except TransientServerError as error:
                failures += 1
                if failures >= _MOST_FAILURES:
                    raise BackboneError(
                        f"the batch {sent.batch_id} cannot be asked for: {error}; run the same command again to "
                        "continue waiting"
                    ) from error
            await asyncio.sleep(self._times.poll_s)

    def _deliver(self, results: bytes) -> None:
        for line in filter(bytes.strip, results.splitlines()):
            row = json.loads(line)
            key, response, error = row["custom_id"], row.get("response"), row.get("error")
            self._delivered.add(key)
            if response:
                answered = Answered(response["status_code"], {}, json.dumps(response["body"]).encode())
            elif error:  # means what it would in the body of a reply
                answered = Answered(200, {}, json.dumps({"error": error}).encode())
            else:
                continue
            if (future := self._waiting.get(key)) is None:
                self._early[key] = answered
            elif not future.done():
                future.set_result(answered)

    def _sent(self) -> dict[str, SentBatch]:
        """Return the latest batch that asks a call, by the call's key; files are read once."""
        if self._known is None:
            self._known = {}
            for path in sorted(self._folder.glob("*.json")):
                try:
                    sent = record_from(SentBatch, json.loads(path.read_text("utf-8")))
                except (OSError, ValueError):
                    continue
                if sent.server == self._server:
                    self._known |= dict.fromkeys(sent.keys, sent)
        return self._known

    def _write(self, sent: SentBatch) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._folder / f"{sent.name}.json", json.dumps(asdict(sent)).encode())

    def _forget(self, sent: SentBatch) -> None:
        (self._folder / f"{sent.name}.json").unlink(missing_ok=True)
        self._known = None
        self._followed.discard(sent.name)


def _parts(lines: Mapping[str, bytes]) -> list[dict[str, bytes]]:
    """Share the lines of requests among batches that are not too large."""
    parts: list[dict[str, bytes]] = [{}]
    size = 0
    for key, line in lines.items():
        if parts[-1] and (len(parts[-1]) >= MOST_REQUESTS or size + len(line) > _MOST_BYTES):
            parts.append({})
            size = 0
        parts[-1][key] = line
        size += len(line)
    return parts
