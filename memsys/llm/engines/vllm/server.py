"""Properties of a vLLM server, read over HTTP."""

from collections.abc import Mapping, Sequence

import httpx

from memsys.credentials import bearer
from memsys.errors import BackboneError
from memsys.llm.engines.servers import get_page

#: What is raised where no server listens or it refuses, and where another program listens, whose pages are no JSON or
#: lack the field.
_NO_ANSWER = (httpx.HTTPError, ValueError, KeyError, TypeError)
_ADVICE = "check backbone.engine.urls: the server may be of another program"


def server_version(root: str) -> str:
    """Return the version of vLLM that a server runs.

    Raises:
        BackboneError: it does not say.
    """
    try:
        return str(get_page(f"{root}/version").raise_for_status().json()["version"])
    except _NO_ANSWER as error:
        raise BackboneError(f"vLLM server {root} does not tell its version ({error!r}); {_ADVICE}") from error


def authorization(variable: str | None) -> Mapping[str, str]:
    """Return the headers with the key that the environment variable holds.

    Raises:
        ConfigError: the variable is not set, or holds what is not a key.
    """
    otherwise = "or set backbone.engine.api_key_env=null for servers without one"
    return bearer(variable, "backbone.engine.api_key_env", otherwise)


def served_models(root: str, api_key_env: str | None) -> Sequence[str]:
    """Return the names of the models a server offers.

    Raises:
        BackboneError: it does not say.
    """
    headers = authorization(api_key_env)
    try:
        models = get_page(f"{root}/v1/models", headers).raise_for_status().json()["data"]
        return [str(model["id"]) for model in models]
    except _NO_ANSWER as error:
        raise BackboneError(f"vLLM server {root} does not list its models ({error!r}); {_ADVICE}") from error
