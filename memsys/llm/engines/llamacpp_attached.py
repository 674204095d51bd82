"""llama.cpp servers (``llama-server``) that run elsewhere, for example on a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, ClassVar

import httpx

from memsys.credentials import bearer, check_url, check_variable
from memsys.errors import BackboneError, ConfigError
from memsys.llm.engines.contract import Endpoint, Engine
from memsys.llm.engines.openai import OTHERWISE
from memsys.llm.engines.servers import check_alike, get_page, server_root, still_healthy
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedLlamaCppConfig:
    """Settings of attached llama.cpp servers.

    Attributes:
        urls: ``http://host:port`` of each; requests are spread. All must serve the same model file.
        api_key_env: environment variable that holds the key the servers want; ``None`` for none.
    """

    #: Fields that cannot change a reply.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset({"urls", "api_key_env"})

    urls: Sequence[str]
    api_key_env: str | None

    def __post_init__(self) -> None:
        """Refuse an empty list, and invalid addresses.

        Raises:
            ConfigError: no URL is given, or one is none or may hold a key.
        """
        if isinstance(self.urls, str) or not self.urls:
            raise ConfigError("backbone.engine.urls must be a list of at least one URL, e.g. [http://127.0.0.1:8080]")
        for url in self.urls:
            check_url("backbone.engine.urls", url, "http://host:8080")
        check_variable("backbone.engine.api_key_env", self.api_key_env)

    def check_start(self) -> None:
        """See :class:`~memsys.llm.engines.contract.ChecksStart`.

        Raises:
            ConfigError: the key's environment variable is not set, or holds what is not a key.
        """
        bearer(self.api_key_env, "backbone.engine.api_key_env", OTHERWISE)

    def build(self) -> Engine:
        """Make the engine."""
        return AttachedLlamaCpp(self)


class AttachedLlamaCpp:
    """Running servers not started by memsys."""

    name = "llamacpp"

    def __init__(self, config: AttachedLlamaCppConfig) -> None:
        self._config = config
        self._said: list[tuple[str, Mapping[str, Json]]] = []  # by the servers that the run began with

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Ask every server what it serves.

        Raises:
            BackboneError: one does not answer, or is of another build, model or number of slots than the first.
            ConfigError: the key's environment variable is not set, or holds what is not a key.
        """
        return self._attach(self._config.urls)

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Go on with the servers that live; each is asked again what it serves.

        Raises:
            BackboneError: none does, or one serves something else now.
        """
        return self._attach(still_healthy(self._config.urls, "llama.cpp"))

    def stop(self) -> None:
        """Do nothing: no server was started."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what the servers say of themselves: build, model file, sequences decoded together."""
        said = self._said[0][1] if self._said else _said({})
        return {"engine": self.name, "mode": "attached", **said}

    def _attach(self, urls: Sequence[str]) -> Sequence[Endpoint]:
        """Ask servers what they serve, which must be what all have served so far."""
        key = self._config.api_key_env
        said = [(root, _said(_properties(root, key))) for root in map(server_root, urls)]
        check_alike("llama.cpp", [*self._said, *said])
        self._said = self._said or said
        return [Endpoint(f"{root}/v1", str(told["file"]), key, "backbone.engine.urls") for root, told in said]


def _said(properties: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return the properties of a server that identify it: build, model file, sequences decoded together."""
    return {
        "build": properties.get("build_info"),
        "file": _model_name(properties),
        "parallel": properties.get("total_slots"),
    }


def _model_name(properties: Mapping[str, Any]) -> str:
    return PurePath(str(properties.get("model_path") or "model")).stem


def _properties(root: str, api_key_env: str | None) -> Mapping[str, Any]:
    """Ask with the key, which llama.cpp wants here too."""
    headers = bearer(api_key_env, "backbone.engine.api_key_env", OTHERWISE)
    try:
        reply = get_page(f"{root}/props", headers).raise_for_status()
        properties = reply.json()
    except (httpx.HTTPError, ValueError) as error:
        raise BackboneError(f"no llama.cpp server answers at {root}/props ({error}); is it running?") from error
    if not isinstance(properties, Mapping):
        raise BackboneError(f"{root}/props is not a llama.cpp server's: it answers with {type(properties).__name__}")
    return properties
