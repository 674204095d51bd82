"""HTTP exchanges of the backbone: one request, one reply whose body is bounded, and failures by what they mean.

libcurl makes them, on the sockets that the event loop watches for it: half of aiohttp's processor time a call. httpx
scans its pool of connections for each request: with 1,000 in flight, 14 ms a call. pyreqwest leaves a request that was
cancelled to its server, which continues with it.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import certifi
import pycurl

from memsys.errors import MemsysError
from memsys.http_bodies import ACCEPTED, BoundedBody, too_large
from memsys.llm.engines.contract import Answered

#: A machine that is gone does not refuse a connection, it says nothing.
CONNECT_SECONDS = 30.0
#: Seconds; below the 5 after which uvicorn and llama.cpp close an idle connection, else a request can meet the close.
_KEEP_ALIVE = 4
#: Connections that are kept, more than any run has in flight.
_MOST_KEPT = 100_000
#: What libcurl says of a certificate from an unknown authority, and what to do then.
_UNKNOWN_AUTHORITY = ("self-signed", "issuer")
_AUTHORITY = "set SSL_CERT_FILE to a file with its certificate authority"
#: Of libcurl's failures (pycurl lacks this name): a head of more than 300 kB.
_HEAD_TOO_LARGE = 100
#: Failures of an invalid request, or of a reply that is not HTTP; all others are of the connection.
_NOT_HTTP = frozenset({
    pycurl.E_URL_MALFORMAT, pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY, _HEAD_TOO_LARGE,
})  # fmt: skip


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
        method: of HTTP, GET or POST.
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
        self._multi: pycurl.AsyncCurlMulti | None = None
        self._idle: defaultdict[_Options, list[_Transfer]] = defaultdict(list)
        self._authorities = _authorities()
        self._closed = False

    async def close(self) -> None:
        """Close all connections, those that wait for a reply too."""
        multi, self._multi, self._closed = self._multi, None, True
        self._idle.clear()
        if multi is not None:
            await multi.aclose()

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
            ExchangeError: the reply is not HTTP, or the address is invalid.
            TimeoutError: the reply was not whole in time.
        """
        if self._closed:
            raise asyncio.CancelledError
        options = _Options(request.method, request.url, tuple(request.headers.items()), request.proxy, timeout)
        idle = self._idle[options] if request.data is not None else []  # pages and files have addresses of their own
        transfer = idle.pop() if idle else _Transfer(options, self._authorities)
        transfer.begin(request, largest, setting)
        try:
            await self._opened().perform(transfer.curl)
        except pycurl.error as error:
            transfer.explain(*error.args)
        answered = transfer.answered()
        idle.append(transfer)
        return answered

    def _opened(self) -> pycurl.AsyncCurlMulti:
        if self._multi is None:
            self._multi = pycurl.AsyncCurlMulti()
            self._multi.setopt(pycurl.M_MAXCONNECTS, _MOST_KEPT)
        return self._multi


class _Options(NamedTuple):
    """Options of a handle, set once for all requests that have them in common."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    proxy: str
    timeout: float


class _Transfer:
    """One handle of libcurl and what it receives; serves one exchange after another.

    Attributes:
        curl: the handle.
    """

    def __init__(self, options: _Options, authorities: Iterable[tuple[int, bytes]]) -> None:
        self._options = options
        self._head, self._body = list[bytes](), list[bytes]()
        self.curl = curl = pycurl.Curl()
        headers = [*options.headers, ("Accept-Encoding", ACCEPTED)]
        lines = [*(f"{name}: {value}".encode() for name, value in headers), b"Expect:"]
        for option, value in (
            (pycurl.URL, options.url.encode()),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.HTTPHEADER, lines),
            (pycurl.USERAGENT, b"memsys"),
            (pycurl.PROXY, options.proxy.encode()),  # empty: none, whatever the environment names
            (pycurl.NOPROXY, b""),
            (pycurl.TIMEOUT_MS, max(1, round(1000 * options.timeout))),
            (pycurl.CONNECTTIMEOUT_MS, round(1000 * CONNECT_SECONDS)),
            (pycurl.MAXAGE_CONN, _KEEP_ALIVE),
            (pycurl.NOSIGNAL, 1),
            (pycurl.HEADERFUNCTION, self._head.append),
            (pycurl.WRITEFUNCTION, self._body.append),
            (pycurl.PREREQFUNCTION, self._may_send),
            *authorities,
        ):
            curl.setopt(option, value)

    def begin(self, request: HttpRequest, largest: int, setting: str) -> None:
        """Take a request."""
        self._largest, self._setting, self._sent = largest, setting, False
        self.curl.setopt(pycurl.MAXFILESIZE, largest)
        if request.upload is not None:
            self.curl.setopt(pycurl.HTTPPOST, _form(request.upload))
        elif request.data is not None:
            self.curl.setopt(pycurl.POSTFIELDS, request.data)

    def answered(self) -> Answered:
        """Return the reply, once it is whole, and forget it with its request."""
        headers = _headers(b"".join(self._head))
        body = BoundedBody(headers, self._largest, self._setting)
        for piece in self._body:
            body.add(piece)
        self._head.clear()
        self._body.clear()
        self.curl.setopt(pycurl.POSTFIELDS, b"")
        return Answered(self.curl.getinfo(pycurl.RESPONSE_CODE), headers, body.whole())

    def explain(self, code: int, message: str) -> NoReturn:
        """Raise what a failure of libcurl means; see :meth:`HttpClient.exchange`."""
        if code == pycurl.E_FILESIZE_EXCEEDED:
            raise too_large(self._largest, self._setting)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            if self.curl.getinfo(pycurl.REQUEST_SIZE):
                raise TimeoutError
            message = f"no connection within {min(self._options.timeout, CONNECT_SECONDS):.0f} s"
        elif code == pycurl.E_ABORTED_BY_CALLBACK:
            message = "the server closed the connection before its reply"
        elif code == pycurl.E_COULDNT_RESOLVE_PROXY:  # libcurl quotes the address, perhaps with a password
            message = "the address of the proxy does not exist"
        elif code == _HEAD_TOO_LARGE:
            message = "the head of the reply is larger than 300 kB"
        elif any(words in message for words in _UNKNOWN_AUTHORITY):
            message = f"{message}; {_AUTHORITY}"
        refused = self.curl.getinfo(pycurl.HTTP_CONNECTCODE) >= 300
        kind = ExchangeError if refused or code in _NOT_HTTP else ConnectionFailedError
        raise kind(message or f"error {code} of libcurl")

    def _may_send(self, *addresses: object) -> int:
        """Return whether the request may be sent, which is once.

        libcurl would send it again where a kept connection was closed before the first byte of the reply: a server can
        do the work, and be paid for it, each time.
        """
        again, self._sent = self._sent, True
        return int(pycurl.PREREQFUNC_ABORT if again else pycurl.PREREQFUNC_OK)


def _headers(head: bytes) -> dict[str, str]:
    """Return the headers of the last head, after those of status 1xx; without those that are not UTF-8."""
    head = head.replace(b"\r\n", b"\n")
    last = head[head.rfind(b"\n\nHTTP/") + 1 :].lstrip()
    headers = {}
    for line in last.partition(b"\n\n")[0].split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        with suppress(UnicodeDecodeError):
            headers[name.decode().lower()] = value.strip().decode()
    return headers


def _form(upload: Upload) -> list[tuple[str, Any]]:
    file = (
        pycurl.FORM_BUFFER, upload.name,
        pycurl.FORM_BUFFERPTR, upload.content,
        pycurl.FORM_CONTENTTYPE, upload.kind,
    )  # fmt: skip
    return [("purpose", upload.purpose), ("file", file)]


def _authorities() -> tuple[tuple[int, bytes], ...]:
    """Return the options for certificates: those of OpenSSL here, ``SSL_CERT_FILE`` among them, else certifi's."""
    known = ssl.get_default_verify_paths()
    file = known.cafile or ("" if known.capath else certifi.where())
    options = [(option, file) for option in (pycurl.CAINFO, pycurl.PROXY_CAINFO) if file]
    options += [(option, known.capath) for option in (pycurl.CAPATH, pycurl.PROXY_CAPATH) if known.capath]
    return tuple((option, path.encode()) for option, path in options)
