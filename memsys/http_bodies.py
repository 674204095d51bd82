"""Bodies of replies with a limit: no more is read or unpacked than a reply of this kind can have."""

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memsys.errors import MemsysError

if TYPE_CHECKING:
    import httpx

#: What is asked for; both are unpacked piece by piece.
ACCEPTED = "gzip, deflate"
_PIECE = 65536
_WINDOW = 32 + zlib.MAX_WBITS  # gzip or zlib, by the header


class BodyError(MemsysError):
    """A body that is too large, or cannot be unpacked."""


class BodyTooLargeError(BodyError):
    """A body above its limit."""


class BoundedBody:
    """Collects a body.

    Args:
        headers: of the reply, names in lower case.
        limit: bytes of the body, unpacked.
        setting: that moves the limit, for the message; empty where none does.

    Attributes:
        has_length: the headers give the length of what comes, which is within the limit.

    Raises:
        BodyError: it is packed in a way that was not asked for, or its length is above the limit already.
    """

    def __init__(self, headers: Mapping[str, str], limit: int, setting: str = "") -> None:
        self._limit, self._setting = limit, setting
        self._pieces: list[bytes] = []
        self._size = 0
        packing = headers.get("content-encoding", "").strip().lower()
        if packing not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BodyError(f"the reply has the content encoding {packing[:40]!r}, which was not requested")
        self._packing = packing
        self._unpack = zlib.decompressobj(_WINDOW) if packing not in ("", "identity") else None
        length = headers.get("content-length", "")
        self.has_length = length.isascii() and length.isdigit()
        if self.has_length and (len(length) > 15 or int(length) > limit):
            raise too_large(limit, setting)

    def add(self, piece: bytes) -> None:
        """Add what has come.

        Raises:
            BodyError: it is too large by now, or cannot be unpacked.
        """
        if self._unpack is None:
            self._keep(piece)
            return
        while piece and not self._unpack.eof:
            self._keep(self._unpacked(piece))
            piece = self._unpack.unconsumed_tail

    def whole(self) -> bytes:
        """Return the body.

        Raises:
            BodyError: it ended before its packing did.
        """
        if self._unpack is not None:
            self._keep(self._unpack.flush())
        if self._unpack is not None and self._size and not self._unpack.eof:
            raise BodyError(f"the reply ended in the middle of its {self._packing} data")
        return b"".join(self._pieces)

    def _unpacked(self, piece: bytes) -> bytes:
        assert self._unpack is not None
        try:
            return self._unpack.decompress(piece, _PIECE)
        except zlib.error as error:
            raise BodyError(f"the reply cannot be decompressed ({error})") from error

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise too_large(self._limit, self._setting)
        self._pieces.append(piece)


def too_large(limit: int, setting: str) -> BodyTooLargeError:
    """Return the error of a body above its limit of bytes, which a setting moves where there is one."""
    advice = f", or raise {setting}" if setting else ""
    return BodyTooLargeError(
        f"the reply is larger than {limit:,} bytes, far above what was requested; check what is running at this address"
        f"{advice}"
    )


def exchange(client: "httpx.Client", method: str, url: str, limit: int, **request: Any) -> "httpx.Response":
    """Make an exchange by httpx, whose reply is read as :class:`BoundedBody` reads it.

    Args:
        client: that makes it.
        method: of HTTP.
        url: that is asked.
        limit: bytes of the body, unpacked.
        request: further arguments of the request, ``headers`` among them.

    Raises:
        BodyError: the body is too large, or cannot be unpacked.
        httpx.HTTPError: there is no reply.
    """
    import httpx

    headers = {**(request.pop("headers", None) or {}), "Accept-Encoding": ACCEPTED}
    with client.stream(method, url, headers=headers, **request) as response:
        body = BoundedBody(response.headers, limit)
        for piece in response.iter_raw(_PIECE):
            body.add(piece)
    of_body = ("content-encoding", "content-length", "transfer-encoding")
    kept = [(name, value) for name, value in response.headers.items() if name not in of_body]
    return httpx.Response(response.status_code, headers=kept, content=body.whole(), request=response.request)
