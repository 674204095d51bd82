"""Requests that another program wrote, as they go to a backbone's server.

What the program asks for holds, as it does at a hosted server; the backbone decides what the program leaves open, and
what it says of every call: a temperature of its own, thinking, fields that its server refuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memsys.errors import ConfigError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.llm.wire import WireRequest, effective_temperature, sampler_fields
from memsys.vocabulary import Json

#: The protocol's own temperature; the defaults of servers differ.
_OPENAI_TEMPERATURE = 1.0
_PROMPT = Prompt("", "a request of another program", "")


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of the backbone whose request another program wrote, checked by :mod:`memsys.proxy.requests`.

    Attributes:
        role: name in the ledger.
        key: hash of the request.
        path: below the endpoint's base URL: ``/chat/completions`` or ``/completions``.
        body: what the program asks for, in fields of the OpenAI protocol, without model, seed and number of replies.
        max_tokens: limit of new tokens.
        attempt: how often the program made this very request before, in the same step of the run; part of the seed.
    """

    role: str
    key: str
    path: str
    body: Mapping[str, Json]
    max_tokens: int
    attempt: int = 0


@runtime_checkable
class CompletesCalls(Protocol):
    """A backbone as one conversation sees it, that makes calls whose requests were written elsewhere."""

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Make the call; see :meth:`memsys.llm.client.BoundModel.complete`."""

    async def count_tokens(self, text: str) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""


async def complete(llm: object, call: ForeignCall) -> CompletedAttempt:
    """Make a call by a model that may only know roles.

    Raises:
        ConfigError: it does.
    """
    if not isinstance(llm, CompletesCalls):
        raise ConfigError(
            f"{type(llm).__name__} cannot serve calls of other programs: it needs a method `complete`, see "
            "memsys.llm.passthrough.CompletesCalls"
        )
    return await llm.complete(call)


def foreign_role(config: BackboneConfig, call: ForeignCall) -> Role:
    """Return the role of a passed-through call for ledger, limits and messages; with the temperature that is sent."""
    asked = call.body.get("temperature")
    asked = _OPENAI_TEMPERATURE if asked is None else float(asked)
    role = Role(call.role, _PROMPT, asked, call.max_tokens)
    sent = effective_temperature(config, role)
    return role if sent is None else Role(call.role, _PROMPT, sent, call.max_tokens)


def foreign_request(config: BackboneConfig, dialect: str, call: ForeignCall, role: Role, seed: int) -> WireRequest:
    """Write the request of an external call.

    Args:
        config: the backbone.
        dialect: name of the engine.
        call: what the program asks for.
        role: made by :func:`foreign_role`.
        seed: of the server's sampler.
    """
    asked = {name: value for name, value in call.body.items() if name not in ("temperature", "response_format")}
    body: dict[str, Json] = {config.max_tokens_field: call.max_tokens + config.thinking_tokens}
    temperature = effective_temperature(config, role)
    if temperature is not None:
        body["temperature"] = temperature
    if config.send_seed:
        body["seed"] = seed
    body |= sampler_fields(dialect, {**config.sampling, **{n: asked.pop(n) for n in SAMPLING_FIELDS if n in asked}})
    if call.path == "/chat/completions":
        body |= config.thinking_switch
    whole = body | asked | _constraint(config, call.body.get("response_format"))
    return WireRequest.of(call.path, whole, None if config.send_seed else seed)


def _constraint(config: BackboneConfig, asked: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return the constraint on the reply's format, if the backbone enforces any."""
    if not asked or config.structured == "off":
        return {}
    if config.structured == "json_object" and asked.get("type") == "json_schema":
        return {"response_format": {"type": "json_object"}}
    return {"response_format": dict(asked)}
