"""HTTP exchanges of the backbone: one request, one reply whose body is bounded, and failures by what they mean.

aiohttp sends them. httpx scans its pool of connections for each request: with 1,000 in flight, 14 ms of processor time
a call against 0.2. pyreqwest leaves a request that was cancelled to its server, which goes on with it.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import aiohttp

from memsys.errors import MemsysError
from memsys.http_bodies import ACCEPTED, BoundedBody
from memsys.llm.engines.contract import Answered

#: A machine that is gone does not refuse a connection, it says nothing.
CONNECT_SECONDS = 30.0
#: Seconds; below the 5 after which uvicorn and llama.cpp close an idle connection, else a request can meet the close.
_KEEP_ALIVE = 4.0
_PIECE = 65536


class ExchangeError(MemsysError):
    """A request that has no reply, or none that is HTTP."""


class ConnectionFailedError(ExchangeError):
    """No connection came about, or it broke before the reply was whole."""


class Upload(NamedTuple):
    """A file that a form sends: its purpose, name, type and bytes."""

    purpose: str
    name: str
    kind: str
    content: bytes


class HttpRequest(NamedTuple):
    """A request.

    Attributes:
        method: of HTTP.
        url: that is asked.
        headers: of the request.
        proxy: address of the proxy that leads there; empty for none.
        data: its body.
        upload: a file to be sent as a form, instead of ``data``.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    proxy: str = ""
    data: bytes | None = None
    upload: Upload | None = None


class HttpClient:
    """Makes exchanges over connections that are kept. Belongs to one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def close(self) -> None:
        """Close all connections, those that wait for a reply too."""
        session, self._session, self._closed = self._session, None, True
        if session is not None:
            await session.close()

    async def exchange(self, request: HttpRequest, *, timeout: float, largest: int, setting: str = "") -> Answered:
        """Send a request and read its reply, as far as it is not larger than it may be.

        Args:
            request: to be sent.
            timeout: seconds until the reply must be whole.
            largest: bytes of its body, unpacked.
            setting: that moves this limit, for the message.

        Raises:
            BodyError: the body is too large, or cannot be unpacked.
            asyncio.CancelledError: the task was cancelled, or the client closed.
            ConnectionFailedError: no connection came about within ``CONNECT_SECONDS``, or it broke.
            ExchangeError: what came is not HTTP, or the address is none.
            TimeoutError: the reply was not whole in time.
        """
        if self._closed:
            raise asyncio.CancelledError
        try:
            async with self._opened().request(
                request.method, request.url, headers=request.headers, data=_content(request), allow_redirects=False,
                proxy=request.proxy or None, timeout=_timeout(timeout),
            ) as response:  # fmt: skip
                headers = _readable(response.headers)
                body = BoundedBody(headers, largest, setting)
                if body.has_length:
                    body.add(await response.read())
                else:
                    async for piece in response.content.iter_chunked(_PIECE):
                        body.add(piece)
                return Answered(response.status, headers, body.whole())
        except aiohttp.ConnectionTimeoutError as error:
            raise ConnectionFailedError(f"no connection within {CONNECT_SECONDS:.0f} s") from error
        except aiohttp.ClientError as error:
            if self._closed:
                raise asyncio.CancelledError from error
            lost = isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError)
            raise (ConnectionFailedError if lost else ExchangeError)(f"{type(error).__name__}: {error}") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE),
                headers={"User-Agent": "memsys", "Accept-Encoding": ACCEPTED},
                auto_decompress=False,  # see memsys.http_bodies
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _content(request: HttpRequest) -> bytes | aiohttp.FormData | None:
    if request.upload is None:
        return request.data
    form, upload = aiohttp.FormData(), request.upload
    form.add_field("purpose", upload.purpose)
    form.add_field("file", upload.content, filename=upload.name, content_type=upload.kind)
    return form


@lru_cache(maxsize=16)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)


def _readable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case, without those that are not UTF-8."""
    return {name.lower(): value for name, value in headers.items() if value.isascii() or _is_text(value)}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # aiohttp keeps the bytes of what is not UTF-8 as surrogates
        return False
    return True
