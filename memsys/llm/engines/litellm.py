"""Providers that speak no form of OpenAI's protocol, through the package litellm (extra ``memsys[litellm]``)."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from memsys.credentials import bearer, check_url, check_variable
from memsys.errors import ConfigError
from memsys.extras import installed_version, need_package
from memsys.llm.engines.contract import Answered, Endpoint, Engine
from memsys.llm.engines.openai import OTHERWISE
from memsys.vocabulary import Json

#: In place of an address, where litellm knows the provider's.
_PROVIDERS_OWN = "litellm"
_FAILED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteLLMEngineConfig:
    """Settings of a model behind litellm.

    Attributes:
        model: with the provider before it, as litellm names it, e.g. ``anthropic/claude-haiku-4-5``.
        api_base: address of the provider; ``None``: that which litellm knows.
        api_key_env: environment variable that holds the key; ``None``: the one that litellm looks for, such as
            ``ANTHROPIC_API_KEY``.
    """

    #: Fields that cannot change a reply.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset({"api_base", "api_key_env"})

    model: str
    api_base: str | None
    api_key_env: str | None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key and value.
        """
        if self.api_base is not None:
            check_url("backbone.engine.api_base", self.api_base, "https://host")
        check_variable("backbone.engine.api_key_env", self.api_key_env)
        if not self.model:
            raise ConfigError("backbone.engine.model is empty; it must be PROVIDER/MODEL, as litellm names it")

    def check_start(self) -> None:
        """See :class:`~memsys.llm.engines.contract.ChecksStart`.

        Raises:
            ConfigError: the package is not installed, or the key's environment variable is not set.
        """
        need_package("litellm", "litellm", "backbone=litellm")
        bearer(self.api_key_env, "backbone.engine.api_key_env", OTHERWISE)

    def served(self) -> tuple[str, str]:
        """See :class:`~memsys.llm.engines.contract.ServedByOthers`."""
        return self.api_base or _PROVIDERS_OWN, self.model

    def build(self) -> Engine:
        """Make the engine."""
        return LiteLLMEngine(self)


class LiteLLMEngine:
    """Requests as calls of litellm; nothing to start, nothing to repair."""

    name = "litellm"

    def __init__(self, config: LiteLLMEngineConfig) -> None:
        self._config = config

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Give the endpoint.

        Raises:
            ConfigError: the package is not installed, or the key's environment variable is not set.
        """
        self._config.check_start()
        return [Endpoint(*self._config.served(), self._config.api_key_env, "backbone.engine.api_base")]

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Go on with the same endpoint: it is not ours to repair."""
        return self.start(log_dir)

    def stop(self) -> None:
        """Do nothing: no server was started."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Name the model, and the version of litellm, which writes the provider's requests."""
        return {"engine": self.name, "model": self._config.model, "litellm": installed_version("litellm")}

    async def answer(self, path: str, body: Mapping[str, Json], timeout: float) -> Answered:
        """See :class:`~memsys.llm.engines.contract.AnswersItself`."""
        litellm, errors = _litellm()
        ask = litellm.acompletion if path == "/chat/completions" else litellm.atext_completion
        variable = self._config.api_key_env
        try:
            reply = await ask(
                model=self._config.model, api_base=self._config.api_base, timeout=timeout, num_retries=0,
                api_key=os.environ.get(variable, "").strip() if variable else None, **body,
            )  # fmt: skip
        except errors as error:
            return _refused(error)
        headers = getattr(reply, "_hidden_params", {}).get("additional_headers") or {}
        return Answered(200, _plain_names(headers), json.dumps(reply.model_dump()).encode())


def _refused(error: Any) -> Answered:
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    said = {"error": {"message": str(getattr(error, "message", error))}}
    headers = getattr(response, "headers", None) or {}
    return Answered(status if isinstance(status, int) else _FAILED, dict(headers), json.dumps(said).encode())


def _plain_names(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return a provider's headers under their own names, which litellm puts a word before."""
    return {name.removeprefix("llm_provider-").lower(): str(value) for name, value in headers.items()}


def _litellm() -> tuple[Any, type[Exception]]:
    """Import litellm so that it asks nothing of the network by itself and prints nothing.

    Returns:
        The package, and the base of the errors that it raises: those of the package openai, which it brings.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm
    from openai import OpenAIError

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm, OpenAIError
