"""Servers that are reached over HTTP and are not ours: their address, and whether they say that they can serve."""

from collections.abc import Mapping, Sequence

import httpx

from memsys.errors import BackboneError

_TIMEOUT_SECONDS = 10.0


def server_root(url: str) -> str:
    """Address of a server without ``/v1``, which people write or leave out."""
    return url.rstrip("/").removesuffix("/v1")


def get_page(url: str, headers: Mapping[str, str] | None = None, timeout: float = _TIMEOUT_SECONDS) -> httpx.Response:
    """Ask without the environment's proxies: they are for hosted servers, not for ours."""
    return httpx.get(url, headers=headers, timeout=timeout, trust_env=False)


def is_healthy(root: str, patience: float = _TIMEOUT_SECONDS) -> bool:
    """Whether a server says that it can serve.

    Args:
        root: its address without ``/v1``.
        patience: seconds to wait for a word of it; one that is not there is known at once.
    """
    try:
        return get_page(f"{root}/health", timeout=patience).is_success
    except httpx.HTTPError:
        return False


def still_healthy(urls: Sequence[str], kind: str) -> list[str]:
    """Of servers that somebody else runs, those that can still serve.

    Args:
        urls: with or without ``/v1``.
        kind: name of the program that serves, for the message.

    Raises:
        BackboneError: none can.
    """
    healthy = [url for url in urls if is_healthy(server_root(url))]
    if not healthy:
        raise BackboneError(f"no attached {kind} server is healthy, and they are not ours to restart")
    return healthy
