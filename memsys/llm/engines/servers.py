"""Servers that are reached over HTTP: their address, and whether they say that they can serve."""

from collections.abc import Mapping, Sequence

import httpx

from memsys.errors import BackboneError
from memsys.http_bodies import BodyError, exchange
from memsys.llm.engines.contract import OtherServerError
from memsys.vocabulary import Json

_TIMEOUT_SECONDS = 10.0
#: Bytes of a page by which a server describes itself.
_LARGEST_PAGE = 4 * 1024 * 1024


def server_root(url: str) -> str:
    """Return the address of a server without ``/v1``, which people write or leave out."""
    return url.rstrip("/").removesuffix("/v1")


def get_page(url: str, headers: Mapping[str, str] | None = None, timeout: float = _TIMEOUT_SECONDS) -> httpx.Response:
    """Ask without the environment's proxies: they are for hosted servers, not for these.

    Args:
        url: of the page.
        headers: of the request.
        timeout: seconds to connect, and between two parts of the reply.

    Raises:
        httpx.HTTPError: there is no reply.
    """
    try:
        with httpx.Client(timeout=timeout, trust_env=False) as client:
            return exchange(client, "GET", url, _LARGEST_PAGE, headers=headers)
    except BodyError as error:
        raise httpx.DecodingError(str(error)) from error


def responds(url: str, timeout: float = _TIMEOUT_SECONDS) -> bool:
    """Return whether a server answers a page without an error.

    Args:
        url: of the page.
        timeout: seconds to wait for an answer; where no server listens, none are waited.
    """
    try:
        return get_page(url, timeout=timeout).is_success
    except httpx.HTTPError:
        return False


def is_healthy(root: str, timeout: float = _TIMEOUT_SECONDS) -> bool:
    """Return whether a server says that it can serve.

    Args:
        root: its address without ``/v1``.
        timeout: seconds to wait for an answer.
    """
    return responds(f"{root}/health", timeout)


def still_healthy(urls: Sequence[str], kind: str) -> list[str]:
    """Return the attached servers that can still serve.

    Args:
        urls: with or without ``/v1``.
        kind: name of the program that serves, for the message.

    Raises:
        BackboneError: none can.
    """
    healthy = [url for url in urls if is_healthy(server_root(url))]
    if not healthy:
        raise BackboneError(f"no attached {kind} server is healthy; memsys does not restart attached servers")
    return healthy


def check_alike(kind: str, said: Sequence[tuple[str, Mapping[str, Json]]]) -> None:
    """Refuse servers of one run that do not say the same of themselves: one fingerprint represents the replies of all.

    Args:
        kind: name of the program that serves, for the message.
        said: address of each server and what it says; of one that was asked again, both times.

    Raises:
        OtherServerError: one says something else than the first.
    """
    first, expected = said[0]
    for root, properties in said[1:]:
        for name, value in properties.items():
            if value != expected[name]:
                raise OtherServerError(
                    f"{kind} server {root} reports {name} {value!r}, {first} reported {expected[name]!r}; attach "
                    "servers that run the same program and model with the same options, and remove others from "
                    "backbone.engine.urls"
                )
