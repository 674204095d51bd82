"""What a vLLM server tells of itself over HTTP."""

from collections.abc import Mapping, Sequence

import httpx

from memsys.credentials import bearer
from memsys.errors import BackboneError

_TIMEOUT = 10.0


def is_healthy(root: str, patience: float = _TIMEOUT) -> bool:
    """Whether a server says that it can serve.

    Args:
        root: its address without ``/v1``.
        patience: seconds to wait for a word of it; one that is not there is known at once.
    """
    try:
        return _get(f"{root}/health", timeout=patience).is_success
    except httpx.HTTPError:
        return False


def server_version(root: str) -> str:
    """Version of vLLM that a server runs.

    Raises:
        BackboneError: it does not say.
    """
    try:
        reply = _get(f"{root}/version").raise_for_status()
    except httpx.HTTPError as error:
        raise BackboneError(f"vLLM server {root} does not tell its version: {error}") from error
    return str(reply.json()["version"])


def _get(url: str, headers: Mapping[str, str] | None = None, timeout: float = _TIMEOUT) -> httpx.Response:
    """Ask without the environment's proxies: they are for hosted servers, not for ours."""
    return httpx.get(url, headers=headers, timeout=timeout, trust_env=False)


def authorization(variable: str | None) -> Mapping[str, str]:
    """Headers with the key that the environment variable holds.

    Raises:
        ConfigError: the variable is not set, or holds what is no key.
    """
    otherwise = "or set backbone.engine.api_key_env=null for servers without one"
    return bearer(variable, "backbone.engine.api_key_env", otherwise)


def served_models(root: str, api_key_env: str | None) -> Sequence[str]:
    """Names of the models a server offers.

    Raises:
        BackboneError: it does not say.
    """
    headers = authorization(api_key_env)
    try:
        reply = _get(f"{root}/v1/models", headers).raise_for_status()
    except httpx.HTTPError as error:
        raise BackboneError(f"vLLM server {root} does not list its models: {error}") from error
    return [str(model["id"]) for model in reply.json()["data"]]
