"""HTTP exchanges of the backbone: one request, one reply whose body is bounded, and failures by what they mean.

pyreqwest sends them, a binding of Rust's reqwest: with 256 requests in flight an exchange takes a third of aiohttp's
processor time, and most of it on a thread of its own.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    BuilderError,
    ClientClosedError,
    NetworkError,
    RequestError,
    RequestTimeoutError,
)

from memsys.errors import MemsysError
from memsys.http_bodies import ACCEPTED, BoundedBody
from memsys.llm.engines.contract import Answered

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.http import HeaderMap
    from pyreqwest.request import StreamRequest

#: A machine that is gone does not refuse a connection, it says nothing.
CONNECT_SECONDS = 30.0
#: Seconds; below the 5 after which uvicorn and llama.cpp close an idle connection, else a request can meet the close.
_KEEP_ALIVE = 4.0
#: Causes of a failure that are told, and how those begin that say nothing more than the address.
_CAUSES, _GENERAL = 2, ("error sending request", "client error")


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
        self._clients: dict[str, Client] = {}
        self._closed = False

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients, self._closed = self._clients, {}, True
        for client in clients.values():
            await client.close()

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
        begun = perf_counter()
        try:
            async with self._built(request, timeout) as response:
                headers = _readable(response.headers)
                body = BoundedBody(headers, largest, setting)
                if body.has_length:
                    body.add(bytes(await response.bytes()))
                else:
                    read = response.body_reader.read_chunk
                    while (piece := await read()) is not None:
                        body.add(bytes(piece))
                return Answered(response.status, headers, body.whole())
        except RequestTimeoutError as error:
            if perf_counter() - begun >= timeout:
                raise TimeoutError from error
            raise ConnectionFailedError(f"no connection within {CONNECT_SECONDS:.0f} s") from error
        except ClientClosedError as error:
            raise asyncio.CancelledError from error
        except (NetworkError, BodyDecodeError) as error:
            raise ConnectionFailedError(_causes(error)) from error
        except (BuilderError, RequestError) as error:
            raise ExchangeError(_causes(error)) from error
        finally:
            _end_where_cancelled()

    def _built(self, request: HttpRequest, timeout: float) -> "StreamRequest":
        built = self._client(request.proxy).request(request.method, request.url).headers(request.headers)
        built = built.timeout(timedelta(seconds=timeout))
        if request.data is not None:
            built = built.body_bytes(request.data)
        if request.upload is not None:
            from pyreqwest.multipart import FormBuilder, PartBuilder

            upload = request.upload
            part = PartBuilder.from_bytes(upload.content).file_name(upload.name).mime(upload.kind)
            built = built.multipart(FormBuilder().text("purpose", upload.purpose).part("file", part))
        return built.build_streamed()

    def _client(self, proxy: str) -> "Client":
        if proxy not in self._clients:
            self._clients[proxy] = _client(proxy)
        return self._clients[proxy]


def _end_where_cancelled() -> None:
    """End a task that was cancelled: pyreqwest ends the wait with the reply where that came at the same moment."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _client(proxy: str) -> "Client":
    from pyreqwest.proxy import ProxyBuilder

    builder = (
        ClientBuilder()
        .no_proxy()  # see memsys.proxies
        .user_agent("memsys")
        .default_headers({"Accept-Encoding": ACCEPTED})
        .follow_redirects(False)
        .connect_timeout(timedelta(seconds=CONNECT_SECONDS))
        .pool_idle_timeout(timedelta(seconds=_KEEP_ALIVE))
    )
    for packing in (builder.gzip, builder.brotli, builder.zstd, builder.deflate):  # see memsys.http_bodies
        packing(False)
    return (builder.proxy(ProxyBuilder.all(proxy)) if proxy else builder).build()


def _readable(headers: "HeaderMap") -> dict[str, str]:
    """Return headers by their names in lower case, without those that are not UTF-8."""
    try:
        return dict(headers.items())
    except ValueError:
        readable = {}
        for name in headers:
            try:
                readable[name] = headers[name]
            except ValueError:
                continue
        return readable


def _causes(error: "RequestError | ValueError") -> str:
    """Say why a request failed, without its address."""
    causes = [cause["message"] for cause in (getattr(error, "details", None) or {}).get("causes") or ()]
    said = [cause for cause in causes if not cause.startswith(_GENERAL)]
    return ": ".join(said[-_CAUSES:]) or str(error)
