"""A memory behind HTTP: ``docs/any_memory.md`` describes its requests, ``openapi.yaml`` defines them."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from secrets import token_hex
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from baselines.external.config import HttpConfig
from baselines.external.found import read_found, read_ids
from baselines.external.store import Found, Item
from memsys.credentials import bearer, redacted
from memsys.errors import MemoryProtocolError, MemoryServerError, quoted
from memsys.http_bodies import BodyError, exchange
from memsys.proxies import proxy_of
from memsys.retrying import LONGEST_PAUSE, RETRIED_STATUS, asked_pause, pause_before
from memsys.vocabulary import Json

if TYPE_CHECKING:
    import httpx

#: Bytes of the largest reply that is read.
_LARGEST_REPLY = 16 * 1024 * 1024
_TRIES, _FIRST_PAUSE = 4, 0.5
#: Seconds between two looks at what is not indexed yet.
_LOOK_EVERY = 0.2
_SHOWN = 300
#: What a reset is called, kept by the server with what is stored after it.
RESET_ID = "reset_id"
_UNWATCHED = (
    "%s: /stats does not return the reset_id of the last /reset: a server that is started again and has lost what it "
    "held would go unnoticed"
)
logger = logging.getLogger(__name__)


class HttpStore:
    """One user of a memory server.

    Attributes:
        watched: whether the server would show that it has lost what it held.
    """

    def __init__(self, config: HttpConfig, user: str) -> None:
        self._config, self._user = config, user
        self._client: httpx.Client | None = None
        self._answered = self.watched = False
        self._reset_id = token_hex(8)
        self._stats: Mapping[str, Json] = {}

    async def open(self, lent: Mapping[str, Json]) -> None:
        """Connect, and delete what the server holds of this user.

        Raises:
            MemoryServerError: the server cannot be reached.
            MemoryProtocolError: it refuses.
        """
        import httpx

        url = self._config.url.rstrip("/")
        headers = bearer(self._config.api_key_env or None, "memory.api_key_env", "")
        proxy = proxy_of(url)
        self._client = httpx.Client(
            headers=dict(headers),
            timeout=self._config.timeout,
            trust_env=False,
            proxy=proxy.address if proxy else None,
        )
        await self._post("reset", {RESET_ID: self._reset_id, **({"models": dict(lent)} if lent else {})})
        self.watched = RESET_ID in await self._look()
        if not self.watched:
            logger.warning(_UNWATCHED, self._config.url)

    async def add(self, item: Item) -> Sequence[str]:
        """Write one item."""
        return read_ids(await self._post("add", {"items": [item_body(item)]}))

    async def settle(self) -> None:
        """Ask for the statistics until ``pending`` is 0 or missing.

        Raises:
            MemoryProtocolError: it is not, after ``memory.settle_seconds``.
            MemoryServerError: what was stored is lost.
        """
        ends = monotonic() + self._config.settle_seconds
        while True:
            self._stats = await self._look()
            if not self._stats.get("pending"):
                return
            if monotonic() >= ends:
                raise MemoryProtocolError(
                    f"memory.url={self._config.url}: {self._stats['pending']} items are still not indexed after "
                    f"{self._config.settle_seconds:g} s; raise memory.settle_seconds"
                )
            await asyncio.sleep(_LOOK_EVERY)

    async def search(self, query: str, k: int) -> Sequence[Found]:
        """Search.

        Raises:
            MemoryServerError: what was stored is lost, and so was not searched.
            MemoryProtocolError: what it returned is not a list of results.
        """
        given = await self._post("search", {"query": query, "k": k})
        if self.watched:
            await self._look()
        where = f"memory.url={self._config.url}: `results` of /search"
        if not isinstance(given.get("results"), list):
            raise MemoryProtocolError(f"{where} is {quoted(given.get('results'))}; it must be a list")
        return read_found(given["results"], where)

    def statistics(self) -> Mapping[str, Json]:
        """Return the last reply of ``/stats`` before a question, and whether the server can be watched."""
        return {**{key: value for key, value in self._stats.items() if key != RESET_ID}, "watched": self.watched}

    async def close(self) -> None:
        """Close the connection; what was stored stays on the server until it is reset."""
        if self._client is not None:
            self._client.close()

    async def _look(self) -> Mapping[str, Any]:
        """Return the statistics.

        Raises:
            MemoryServerError: they are of another reset.
        """
        stats = await asyncio.to_thread(self._request, "GET", "stats", {"user": self._user})
        if stats.get(RESET_ID, None if self.watched else self._reset_id) != self._reset_id:
            raise MemoryServerError(
                f"memory.url={self._config.url}: the server no longer holds what was stored: {RESET_ID} of /stats is "
                f"{quoted(stats.get(RESET_ID))}; it was started again, or somebody else reset its user; repeat the "
                "command, which writes everything again"
            )
        return stats

    async def _post(self, page: str, body: Mapping[str, Json]) -> Mapping[str, Any]:
        return await asyncio.to_thread(self._request, "POST", page, {"user": self._user, **body})

    def _request(self, method: str, page: str, values: Mapping[str, Json]) -> Mapping[str, Any]:
        """Make one exchange, again where the server is busy or slow.

        Raises:
            MemoryServerError: it failed four times, or the server is gone: one that is started again may have lost
                what it held.
            MemoryProtocolError: it was refused, or the reply is not a JSON object.
        """
        import httpx

        assert self._client is not None, "open() comes first"
        url = f"{self._config.url.rstrip('/')}/{page}"
        request = {"params": dict(values)} if method == "GET" else {"json": dict(values)}
        problem, pause = "", 0.0
        for attempt in range(_TRIES):
            sleep(pause)
            pause = pause_before(attempt, _FIRST_PAUSE)
            try:
                reply = exchange(self._client, method, url, _LARGEST_REPLY, **request)
            except httpx.HTTPError as error:
                if self._answered and isinstance(error, httpx.ConnectError):
                    raise MemoryServerError(redacted(
                        f"{url}: the server is gone ({error}), and what it held may be lost; start it again at "
                        f"memory.url={self._config.url} and repeat the command, which writes everything again (at "
                        "another address it is another run)"
                    )) from error  # fmt: skip
                problem = f"{type(error).__name__}: {error}"
                continue
            except BodyError as error:
                raise MemoryProtocolError(f"{url}: {error}") from error
            self._answered = True
            if reply.status_code not in RETRIED_STATUS:
                return _object(url, reply)
            problem = f"status {reply.status_code}: {reply.text[:_SHOWN]}"
            pause = max(pause, min(asked_pause(reply.headers), LONGEST_PAUSE))
        raise MemoryServerError(redacted(f"{url} failed {_TRIES} times ({problem}); see memory.url and the server"))


def item_body(item: Item) -> dict[str, Json]:
    """Return an item as ``/add`` takes it."""
    turns = [
        {"id": turn.turn_id, "speaker": turn.speaker, "text": turn.text, "date": turn.date_time} for turn in item.turns
    ]
    return {"id": item.key, "text": item.text, "date": item.date, "session": item.turns[0].session_id, "turns": turns}


def _object(url: str, reply: "httpx.Response") -> Mapping[str, Any]:
    if reply.status_code >= 400:
        raise MemoryProtocolError(redacted(f"{url}: status {reply.status_code}: {reply.text[:_SHOWN]}"))
    try:
        given = json.loads(reply.text) if reply.text.strip() else {}
    except ValueError as error:
        raise MemoryProtocolError(redacted(f"{url}: the reply is not JSON: {reply.text[:_SHOWN]!r}")) from error
    if not isinstance(given, dict):
        raise MemoryProtocolError(redacted(f"{url}: the reply is not a JSON object: {reply.text[:_SHOWN]!r}"))
    return given
