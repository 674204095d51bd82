"""What a memory system and the reader know of the backbone: roles in, replies out.

A *role* is one purpose a language model is called for (analyse, route, evolve, answer ...), with its prompt file,
schema and sampling. The same role with the same values, conversation, key and run seed always makes the same request,
whichever system asks: ablations that share calls share replies.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any, Literal, Protocol

from memsys.errors import ConfigError
from memsys.field_types import declared_types, type_problem
from memsys.llm.correction import Correction, make_correction
from memsys.llm.reading import TOLERANT, ReplyReading, accepted_schema, make_reading
from memsys.prompt_packs.local import is_reference, read_text
from memsys.settings import check_minimum, check_optional
from memsys.vocabulary import Completion, Json

Phase = Literal["prepare", "write", "consolidate", "retrieve", "answer", "judge"]


@dataclass(frozen=True, slots=True)
class CallScope:
    """Where in the run a call is made; set by the runner, read by the client for ledger and priority."""

    phase: Phase
    item: str = ""  # unit id or question id
    #: Neither read nor write the reply cache: latency is being measured.
    fresh: bool = False


#: Set by the runner around each step of a conversation. Calls outside a scope are an error.
call_scope: ContextVar[CallScope] = ContextVar("call_scope")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: ``$name`` placeholders of :class:`string.Template`. ``sha256`` goes into ``run.json``."""

    text: str
    source: str
    sha256: str

    @classmethod
    def load(cls, path: Path) -> "Prompt":
        """Read a prompt file.

        Raises:
            ConfigError: the file does not exist.
        """
        try:
            text = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError as error:
            raise ConfigError(
                f"prompt file {path} does not exist; name an existing file or leave the key null"
            ) from error
        return cls.of(text, path.name)

    @classmethod
    def of(cls, text: str, source: str) -> "Prompt":
        """Make the prompt of a text, white space at its ends included."""
        return cls(text=text, source=source, sha256=hashlib.sha256(text.encode()).hexdigest())

    def render(self, values: Mapping[str, str]) -> str:
        """Fill the placeholders.

        Raises:
            ConfigError: a placeholder has no value.
        """
        try:
            return Template(self.text).substitute(values)
        except (KeyError, ValueError) as error:
            known = ", ".join(sorted(values))
            raise ConfigError(
                f"prompt {self.source}: placeholder {error} cannot be filled; known are {known}"
            ) from error


@dataclass(frozen=True, slots=True)
class Role:
    """One purpose the backbone is called for.

    Attributes:
        name: ledger and cache name, e.g. ``analyse``.
        prompt: template of the user message (or of the whole prompt in completion mode).
        temperature: sampling temperature.
        max_tokens: limit of new tokens.
        schema: JSON schema the reply must follow (the server constrains decoding to it); ``None`` for free text.
        system: system message in chat mode; left out in completion mode.
        system_prompt: template of the system message, rendered with the same values, where an authors' prompt has one
            (:mod:`memsys.prompt_packs`); then ``system`` is not read.
        system_first: in completion mode, where there are no system messages, it stands before the prompt.
        top_logprobs: alternatives to report per generated token; 0 asks for none.
        malformed_retries: further attempts, with other seeds, when the reply does not parse or validate.
        raw: the prompt goes to the completion endpoint without chat template, whatever the backbone's prompt mode.
        reading: how the reply is read; it changes no request.
        accepts: JSON schema that the reply must follow where it is not ``schema`` (see :attr:`Reading.check`).
        correction: how a malformed reply is asked for again; ``None``: with the same request and another seed.
        exchange: messages after the prompt, the model's and the user's in turn.
    """

    name: str
    prompt: Prompt
    temperature: float
    max_tokens: int
    schema: Mapping[str, Json] | None = None
    system: str | None = None
    top_logprobs: int = 0
    malformed_retries: int = 1
    raw: bool = False
    reading: ReplyReading = TOLERANT
    accepts: Mapping[str, Json] | None = None
    system_prompt: Prompt | None = None
    system_first: bool = False
    correction: Correction | None = None
    exchange: tuple[str, ...] = ()

    def after(self, reply: str) -> "Role":
        """The role in the attempt after a malformed reply; only the first such reply is shown, as in the source."""
        if self.correction is None:
            return self
        warmer, exchange = self.correction.warmer(self.temperature), (reply, self.correction.text)
        return replace(self, temperature=warmer, exchange=self.exchange or exchange)

    def with_system(self, values: Mapping[str, str]) -> "Role":
        """The role with its system message rendered.

        Raises:
            ConfigError: a placeholder has no value.
        """
        return self if self.system_prompt is None else replace(self, system=self.system_prompt.render(values))


@dataclass(frozen=True, slots=True)
class Reply:
    """The backbone's reply to a role.

    Attributes:
        value: the parsed object that validates against the role's schema; ``None`` when every attempt was malformed,
            or when the role has no schema. The caller then takes the role's documented fallback.
        text: the last attempt's text, thinking blocks removed.
        completion: the last attempt.
        malformed: no attempt gave a valid object. Always ``False`` for a role without schema.
        repaired: the object was valid only after repair (cut to its braces, or closed after truncation).
    """

    value: Mapping[str, Any] | None
    text: str
    completion: Completion
    malformed: bool = False
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One request to the backbone. ``seconds`` is service time; ``queue_seconds`` waiting for a slot in the client.

    ``malformed``: this attempt's reply did not validate. ``repaired``: it did only after repair. ``attempt`` counts
    from 0 over malformed retries; ``transport_retries`` counts resent requests. ``cache_hit``: the reply came from
    the cache, and ``seconds`` is what it took when it was made. ``cached_tokens``: tokens at the prompt's beginning
    that the server had computed for an earlier request; ``None`` where it does not say, or where no request was made.
    """

    conversation_id: str
    phase: str
    role: str
    key: str
    item: str
    attempt: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    queue_seconds: float
    finish_reason: str
    cache_hit: bool
    malformed: bool
    repaired: bool
    transport_retries: int
    request_hash: str
    endpoint: str
    cached_tokens: int | None = None


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


class LanguageModel(Protocol):
    """The backbone as one conversation sees it."""

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together that one request may hold."""

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Make one call (and its retries).

        Args:
            role: the purpose.
            values: fills the prompt's placeholders.
            key: what the call is about within the conversation (turn id, question id, "profile:3:cluster_0");
                together with conversation, role and run seed it fixes the sampling seed.

        Raises:
            BackboneError: the server cannot be reached or gave no completion.
        """

    async def count_tokens(self, text: str) -> int:
        """Count the tokens of ``text`` with the backbone's own tokenizer, without special tokens."""


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """What a config says of a role.

    ``prompt: null`` takes the file shipped with the system; ``prompt`` and ``system`` may name a fetched text of the
    authors (:mod:`memsys.prompt_packs`), and ``schema`` is the one their prompt asks for, where it is not ours.
    ``system_first: true`` writes the system message before the prompt in completion mode, which else leaves it out.
    ``min_items``, ``max_items`` and ``max_chars`` bound every
    list and every string of the role's schema: a small model otherwise closes each list at once, or repeats itself up
    to ``max_tokens``. The papers set no such bounds. ``field_order`` names every field of the schema in the order in
    which constrained decoding is to write them; null keeps the shipped order. ``reading`` holds fields of
    :class:`memsys.llm.reading.ReplyReading`; null reads tolerantly. ``correction`` holds fields of
    :class:`memsys.llm.correction.Correction`; null asks again with the same request and another seed.
    """

    temperature: float
    max_tokens: int
    prompt: str | None = None
    system: str | None = None
    malformed_retries: int = 1
    min_items: int | None = None
    max_items: int | None = None
    max_chars: int | None = None
    raw: bool = False
    field_order: Sequence[str] | None = None
    reading: Mapping[str, Json] | None = None
    schema: Mapping[str, Json] | None = None
    system_first: bool = False
    correction: Mapping[str, Json] | None = None


def make_role(
    name: str,
    settings: Mapping[str, Json],
    shipped: Path,
    schema: Mapping[str, Json] | None,
    *,
    top_logprobs: int = 0,
    used: Mapping[str, Json] | None = None,
) -> Role:
    """Make a role from its YAML settings and the prompt file shipped with the system.

    Args:
        name: role name.
        settings: mapping with the fields of :class:`RoleSettings`.
        shipped: folder of the shipped prompts; the file is ``<name>.txt``.
        schema: JSON schema of the reply.
        top_logprobs: see :class:`Role`.
        used: JSON schema of what the role reads of a reply, for ``reading.check: used``; ``None``: all of ``schema``.

    Raises:
        ConfigError: an unknown, missing or wrong setting.
    """
    try:
        known = RoleSettings(**settings)
    except TypeError as error:
        raise ConfigError(f"role {name}: {error}; known settings are {', '.join(RoleSettings.__slots__)}") from error
    _check_settings(known, f"roles.{name}")
    reading = make_reading(name, known.reading)
    schema = schema if schema is None or known.schema is None else known.schema
    fetched_system = known.system if is_reference(known.system) else None
    return Role(
        name=name,
        prompt=_prompt(known.prompt, shipped / f"{name}.txt"),
        temperature=known.temperature,
        max_tokens=known.max_tokens,
        schema=None if schema is None else ordered(name, bounded(schema, known), known.field_order),
        system=None if fetched_system else known.system,
        system_prompt=Prompt.of(read_text(fetched_system), fetched_system) if fetched_system else None,
        system_first=known.system_first,
        top_logprobs=top_logprobs,
        malformed_retries=known.malformed_retries,
        raw=known.raw,
        reading=reading,
        accepts=accepted_schema(reading, schema, used),
        correction=make_correction(name, known.correction),
    )


def _check_settings(settings: RoleSettings, group: str) -> None:
    check_minimum(settings, group, temperature=0, max_tokens=1, malformed_retries=0)
    check_optional(settings, group, min_items=0, max_items=1, max_chars=1)
    for key, declared in declared_types(RoleSettings).items():
        value = getattr(settings, key)
        if problem := type_problem(declared, value):
            raise ConfigError(f"{group}.{key}={value!r} {problem}")
    least, most = settings.min_items, settings.max_items
    if least is not None and most is not None and least > most:
        raise ConfigError(f"{group}.min_items={least} exceeds {group}.max_items={most}: no list has so few and so many")


def _prompt(setting: str | None, shipped: Path) -> Prompt:
    if setting is not None and is_reference(setting):
        return Prompt.of(read_text(setting), setting)
    return Prompt.load(Path(setting) if setting else shipped)


def ordered(name: str, schema: Mapping[str, Json], order: Sequence[str] | None) -> Mapping[str, Json]:
    """Return the schema with its fields in this order: constrained decoding writes them as they stand in the schema.

    Raises:
        ConfigError: the order does not name every field once.
    """
    if order is None:
        return schema
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or sorted(order) != sorted(properties):
        fields = ", ".join(properties) if isinstance(properties, Mapping) else "none"
        raise ConfigError(f"role {name}: field_order={list(order)} must name each field of its schema once: {fields}")
    return {**schema, "properties": {field: properties[field] for field in order}}


def bounded(schema: Mapping[str, Json], settings: RoleSettings) -> Mapping[str, Json]:
    """Return the schema with every list and every free string bounded as the role's settings say."""

    def limit(node: Json) -> Json:
        if isinstance(node, list):
            return [limit(part) for part in node]
        if not isinstance(node, Mapping):
            return node
        limited = {key: limit(part) for key, part in node.items()}
        if node.get("type") == "array":
            bounds = {"minItems": settings.min_items, "maxItems": settings.max_items}
        elif node.get("type") == "string" and "enum" not in node:
            bounds = {"maxLength": settings.max_chars}
        else:
            return limited
        return {**limited, **{key: bound for key, bound in bounds.items() if bound is not None and key not in limited}}

    return {key: limit(part) for key, part in schema.items()}
