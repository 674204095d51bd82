"""External endpoints with the OpenAI protocol: hosted models, or any compatible server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from memsys.credentials import bearer, check_variable
from memsys.endpoint_urls import check_base_url
from memsys.errors import ConfigError
from memsys.llm.engines.contract import Endpoint, Engine
from memsys.vocabulary import Json

#: What else to do where a key is missing.
OTHERWISE = "or set backbone.engine.api_key_env=null for a server without one"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEngineConfig:
    """Settings of a hosted model.

    Attributes:
        base_urls: up to and including ``/v1``; requests are spread over several. Without user or password.
        model: the name the provider knows the model by; name a dated version where there is one.
        api_key_env: environment variable that holds the key, ``None`` for servers without. The key is read for each
            request and never written anywhere.
    """

    #: Fields that cannot change a reply.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset({"base_urls", "api_key_env"})

    base_urls: Sequence[str]
    model: str
    api_key_env: str | None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key and value.
        """
        if isinstance(self.base_urls, str) or not self.base_urls:
            raise ConfigError(
                "backbone.engine.base_urls must be a list of at least one URL, also where it is one: "
                f"'backbone.engine.base_urls=[{self.base_urls or 'https://host/v1'}]'"
            )
        for url in self.base_urls:
            check_base_url("backbone.engine.base_urls", url)
        check_variable("backbone.engine.api_key_env", self.api_key_env)
        if not self.model:
            raise ConfigError("backbone.engine.model is empty; it must be the provider's name of the model")

    def check_start(self) -> None:
        """See :class:`~memsys.llm.engines.contract.ChecksStart`.

        Raises:
            ConfigError: the key's environment variable is not set, or holds what is not a key.
        """
        bearer(self.api_key_env, "backbone.engine.api_key_env", OTHERWISE)

    def served(self) -> tuple[str, str]:
        """See :class:`~memsys.llm.engines.contract.ServedByOthers`."""
        return self.base_urls[0].rstrip("/"), self.model

    def build(self) -> Engine:
        """Make the engine."""
        return OpenAIEngine(self)


class OpenAIEngine:
    """Nothing to start, nothing to repair."""

    name = "openai"

    def __init__(self, config: OpenAIEngineConfig) -> None:
        self._config = config

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Give the endpoints.

        Raises:
            ConfigError: the key's environment variable is not set, or holds what is not a key.
        """
        self._config.check_start()
        variable = self._config.api_key_env
        setting, model = "backbone.engine.base_urls", self._config.model
        return [Endpoint(url.rstrip("/"), model, variable, setting) for url in self._config.base_urls]

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Go on with the same endpoints: they are not ours to repair, and resending may be enough."""
        return self.start(log_dir)

    def stop(self) -> None:
        """Do nothing: no server was started."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was asked for; a provider does not say what it serves."""
        return {"engine": self.name, "model": self._config.model}
