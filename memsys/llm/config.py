"""Settings of a choice of ``conf/backbone``: the model, its engine, and its requests.

Every field is spelt out in YAML. Fields in :attr:`BackboneConfig.RUNTIME_FIELDS` (and the engine's own
``RUNTIME_FIELDS``) cannot change a reply, only how fast or how stubbornly it is fetched.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from memsys.credentials import without_secrets
from memsys.errors import ConfigError
from memsys.llm.engines.contract import EngineConfig, LoadsModelFile
from memsys.llm.gbnf import SPACINGS, no_spacing
from memsys.llm.sampling import SAMPLING_FIELDS, check_sampling, check_temperature
from memsys.settings import check_minimum, check_name
from memsys.vocabulary import Json

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "prompt_mode": ("chat", "completion"),
    "thinking": ("off", "on", "none"),
    "structured": ("json_schema", *SPACINGS, "json_object", "off"),
}
#: Tokens that a server is taken to hold where neither it nor the user says; models of 2024 and later hold more.
ASSUMED_WINDOW = 8192
_TOKEN_COUNTERS = ("server", "characters_by_script", "characters", "transformers:<folder or hub name>")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneConfig:
    """One backbone.

    Attributes:
        name: short name, as tables and paths show it, e.g. ``qwen3_06b``.
        model: the model's name as papers write it, e.g. ``Qwen3-0.6B``; part of the cache key.
        engine: what serves it.
        context_length: tokens of prompt and reply together that one request may hold; ``None``: as many as the server
            says, else :data:`ASSUMED_WINDOW`.
        prompt_mode: ``chat`` sends messages through the model's chat template (POST ``/chat/completions``);
            ``completion`` sends the raw prompt (POST ``/completions``), as CLAG's code does.
        thinking: ``off`` or ``on`` for models with a switch, ``none`` for models without.
        thinking_switch: request fields that set it, e.g. ``{"chat_template_kwargs": {"enable_thinking": False}}``;
            empty for ``none``. Sent in chat mode only: a raw prompt passes no template.
        sampling: one value for each of :data:`SAMPLING_FIELDS`; ``None`` is not sent.
        temperature: overrides every role's temperature; ``None`` keeps the role's.
        structured: how a role's schema binds the server: ``json_schema`` leaves the grammar to the engine, which
            decides where white space is allowed; ``json_spaced`` (a blank after colons and commas) and ``json_compact``
            (none) say it, to llama.cpp by a grammar of ours, to vLLM by the schema; ``json_object`` binds to any JSON
            object, ``off`` leaves it to prompt and parser.
        json_repair: whether a reply that does not parse may be repaired (counted as ``repaired``), where the role's
            ``reading`` allows it too.
        token_counter: ``server`` asks its ``/tokenize``; ``transformers:<name>`` loads a tokenizer here;
            ``characters_by_script`` estimates by the characters and their script, for hosted models that offer
            neither; ``characters`` takes a quarter of the characters whatever their script.
        thinking_tokens: added to each role's limit of new tokens, for thoughts that cannot be switched off.
        completions: whether the server completes raw prompts (POST ``/completions``); ``False`` for one that serves
            chats alone.
        send_temperature: ``False`` for hosted models that refuse any temperature but their own.
        send_seed: ``False`` for hosted models that refuse seeds; replies are then not reproducible without the cache.
        max_tokens_field: ``max_tokens``, or ``max_completion_tokens`` for hosted reasoning models.
        max_in_flight: requests at the servers at once, over all conversations.
        timeout_s: seconds one request may take, from sent to answered.
        transport_retries: how often a request that failed on the way is sent again.
        backoff_s: seconds before the first resend; doubles each time, up to 30.
        max_reply_chars: characters of a reply, thinking left out, that is still parsed; a longer one is malformed.
        max_wait_s: seconds in all that one request waits because its server asks for it; these pauses are no retries.
        max_reply_bytes: bytes of a reply's body above which it is refused unread; ``None``: by the tokens asked for.
        explicit: names of the settings that the user gave; a server's refusal does not change these.
        max_parse_s: seconds of processor time that repairing one reply may take; else it is malformed.
    """

    #: Fields that cannot change a reply. The engine's own are named with the prefix ``engine.``; see
    #: :meth:`runtime_fields`.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset(
        {
            "max_in_flight",
            "timeout_s",
            "transport_retries",
            "backoff_s",
            "max_wait_s",
            "max_reply_bytes",
            "explicit",
            "completions",
        }
    )

    name: str
    model: str
    engine: EngineConfig
    context_length: int | None
    prompt_mode: str
    thinking: str
    thinking_switch: Mapping[str, Json]
    sampling: Mapping[str, float | int | None]
    temperature: float | None
    structured: str
    json_repair: bool
    token_counter: str
    send_temperature: bool
    send_seed: bool
    max_tokens_field: str
    max_in_flight: int
    timeout_s: float
    transport_retries: int
    backoff_s: float
    max_reply_chars: int
    max_parse_s: float
    max_wait_s: float = 120
    max_reply_bytes: int | None = None
    completions: bool = True
    thinking_tokens: int = 0
    explicit: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key, value and choices.
        """
        check_name("backbone.name", self.name)
        named = callable(getattr(self.engine, "build", None))
        _require(named, "engine", self.engine, "the settings of an engine, as in conf/backbone/engine")
        for key, choices in _CHOICES.items():
            _require(getattr(self, key) in choices, key, getattr(self, key), f"one of {', '.join(choices)}")
        fields = ("max_tokens", "max_completion_tokens")
        _require(self.max_tokens_field in fields, "max_tokens_field", self.max_tokens_field, f"one of {fields}")
        _require(set(self.sampling) == set(SAMPLING_FIELDS), "sampling", dict(self.sampling),
                 f"a mapping with the keys {', '.join(SAMPLING_FIELDS)} (null: server default)")  # fmt: skip
        self._check_sampling()
        _require(self.window >= 1, "context_length", self.context_length, "at least 1")
        for key, least in (
            ("max_in_flight", 1),
            ("transport_retries", 0),
            ("backoff_s", 0),
            ("max_wait_s", 0),
            ("max_reply_chars", 1),
            ("thinking_tokens", 0),
        ):
            _require(getattr(self, key) >= least, key, getattr(self, key), f"at least {least}")
        if self.max_reply_bytes is not None:
            check_minimum(self, "backbone", max_reply_bytes=1024)
        for key in ("timeout_s", "max_parse_s"):
            _require(getattr(self, key) > 0, key, getattr(self, key), "above 0")
        counter = self.token_counter
        known = counter in _TOKEN_COUNTERS[:3] or counter.startswith("transformers:")
        _require(known, "token_counter", counter, f"one of {', '.join(_TOKEN_COUNTERS)}")
        _require(isinstance(self.completions, bool), "completions", self.completions, "true or false")
        chat = self.completions or self.prompt_mode == "chat"
        _require(chat, "prompt_mode", self.prompt_mode, "chat, since backbone.completions=false")
        self._check_thinking()
        self._check_structured()
        if isinstance(self.engine, LoadsModelFile):
            self.engine.check_backbone(self.model, self.window)

    @property
    def window(self) -> int:
        """Tokens of prompt and reply together that one request may hold."""
        return ASSUMED_WINDOW if self.context_length is None else self.context_length

    def _check_structured(self) -> None:
        if self.structured in SPACINGS and hasattr(self.engine, "base_urls"):  # an endpoint of OpenAI's protocol
            raise ConfigError(no_spacing(self.structured))
        arguments = getattr(self.engine, "extra_args", None)  # vLLM's alone
        if self.structured in SPACINGS and arguments is not None and "guidance" not in " ".join(map(str, arguments)):
            raise ConfigError(
                f"backbone.structured={self.structured} sets JSON separators, which vLLM's backend guidance"
                ' alone reads: add --structured-outputs-config, {"backend": "guidance"} to backbone.engine.extra_args'
            )

    def _check_thinking(self) -> None:
        switched = bool(self.thinking_switch)
        if switched == (self.thinking != "none") or self.prompt_mode == "completion":
            return
        advice = (
            "set it to off or on, or the switch to {}"
            if switched
            else "name the request fields that set it, or leave backbone.thinking at none for a model without a switch"
        )
        raise ConfigError(
            f"backbone.thinking={self.thinking!r} does not go with "
            f"backbone.thinking_switch={dict(self.thinking_switch)}: {advice}"
        )

    def _check_sampling(self) -> None:
        check_sampling(self.sampling, "backbone.sampling")
        if self.temperature is not None:
            check_minimum(self, "backbone", temperature=0)
            check_temperature("backbone.temperature", self.temperature)

    def runtime_fields(self) -> frozenset[str]:
        """Return the dotted names, within the backbone node, of all settings that cannot change a reply."""
        engine: frozenset[str] = getattr(self.engine, "RUNTIME_FIELDS", frozenset())
        unused = set() if self.thinking_tokens else {"thinking_tokens"}  # runs had none before there was a choice
        return self.RUNTIME_FIELDS | unused | {f"engine.{name}" for name in engine}


def _require(holds: bool, key: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigError(f"backbone.{key} is {without_secrets(value)!r}; it must be {expected}")
