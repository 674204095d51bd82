"""Requests and replies as the OpenAI protocol writes them, with llama.cpp's and vLLM's additions."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.gbnf import SPACINGS, Spacing, no_spacing
from memsys.llm.outcomes import is_failed, is_withheld
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.llm.schemas import OncePerSchema
from memsys.llm.structured import clean
from memsys.llm.token_usage import read_usage
from memsys.llm.values import finite
from memsys.vocabulary import Completion, Json, TokenLogprob

#: Names of our sampling fields that llama.cpp knows by another.
_LLAMACPP_NAMES = {"repetition_penalty": "repeat_penalty"}

#: Characters of the reason for which a reply ended; the protocol's words for it have at most 14.
_REASON_CHARS = 40
#: Fields of a message that hold a model's thoughts: vLLM's and DeepSeek's, OpenRouter's and Ollama's.
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_REPLIES_WITHOUT_TEXT = ("tool_calls", "refusal", *THOUGHTS)
#: Kinds of the parts that a content is a list of.
_SAID_PARTS = frozenset({"text", "output_text", "refusal"})
_ALL_PARTS = _SAID_PARTS | {"thinking", "reasoning", "reasoning_content", "thought"}
#: Where a choice says why it ended: the protocol's field first, then the provider's own word that OpenRouter hands on,
#: and Anthropic's.
_REASONS = ("finish_reason", "native_finish_reason", "stop_reason")
#: Bytes of a reply of few tokens, with whatever a server adds to it; of one more token; of one more log-probability.
_USUAL_REPLY, _BYTES_PER_TOKEN, _BYTES_PER_LOGPROB = 4 * 1024 * 1024, 64, 256


class MalformedReplyError(Exception):
    """A server's reply is not of the protocol's shape; the request is sent again."""


class WireRequest(NamedTuple):
    """Body of a request, without the server's name of the model.

    Attributes:
        path: follows the base URL.
        body: of the request.
        text: the body as JSON; it keeps its order, since constrained decoding writes an object's members in the
            schema's.
        unsent_seed: the call's seed where the server takes none (``backbone.send_seed``); ``None`` where it is sent.
    """

    path: str
    body: Mapping[str, Json]
    text: str
    unsent_seed: int | None = None

    @classmethod
    def of(cls, path: str, body: Mapping[str, Json], unsent_seed: int | None = None) -> "WireRequest":
        """Write a body as JSON."""
        return cls(path, body, json.dumps(body), unsent_seed)

    def digest(self, model: str) -> str:
        """Return the hash of all that can change the reply.

        A seed that is not sent counts too: else a retry would get the malformed reply that it is to replace, and each
        further seed of a run, or repeat of a judge, the replies of the first.

        Args:
            model: :func:`model_text` of the model's fingerprint.
        """
        whole = f"{model}\n{self.path}\n{self.text}"
        if self.unsent_seed is not None:
            whole = f"{whole}\n{self.unsent_seed}"
        return hashlib.sha256(whole.encode()).hexdigest()


def model_text(model: Mapping[str, Json]) -> str:
    """Return the fingerprint of a model as a text that is equal for equal ones."""
    return json.dumps(model, sort_keys=True)


def effective_temperature(config: BackboneConfig, role: Role) -> float | None:
    """Return the temperature that is sent; ``None`` where the server takes its own."""
    if not config.send_temperature:
        return None
    return role.temperature if config.temperature is None else config.temperature


def make_request(config: BackboneConfig, dialect: str, role: Role, prompt: str, seed: int) -> WireRequest:
    """Write a request.

    Args:
        config: the backbone.
        dialect: name of the engine.
        role: purpose of the call.
        prompt: the rendered prompt.
        seed: of the server's sampler.
    """
    chat = config.prompt_mode == "chat" and not role.raw
    body: dict[str, Json] = {config.max_tokens_field: role.max_tokens + config.thinking_tokens}
    temperature = effective_temperature(config, role)
    if temperature is not None:
        body["temperature"] = temperature
    if config.send_seed:
        body["seed"] = seed
    body |= sampler_fields(dialect, config.sampling)
    body |= {**_messages(role, prompt), **config.thinking_switch} if chat else {"prompt": _completion(role, prompt)}
    if role.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": role.top_logprobs} if chat else {"logprobs": role.top_logprobs}
    path, unsent_seed = "/chat/completions" if chat else "/completions", None if config.send_seed else seed
    if role.schema is None or config.structured == "off":
        return WireRequest.of(path, body, unsent_seed)
    fields, text = _constraint(role.schema, config.structured, dialect, role.name, chat)
    if not fields.keys().isdisjoint(body):  # a switch of the model's thinking that writes the same field
        return WireRequest.of(path, body | fields, unsent_seed)
    return WireRequest(path, body | fields, f"{json.dumps(body)[:-1]}, {text[1:]}", unsent_seed)


def sampler_fields(dialect: str, sampling: Mapping[str, float | int | None]) -> dict[str, Json]:
    """Return the fields of the sampler as an engine names them, without those that are ``None``."""
    names = _LLAMACPP_NAMES if dialect == "llamacpp" else {}
    return {names.get(name, name): sampling[name] for name in SAMPLING_FIELDS if sampling.get(name) is not None}


def _messages(role: Role, prompt: str) -> dict[str, Json]:
    system = [{"role": "system", "content": role.system}] if role.system else []
    messages = [*system, {"role": "user", "content": prompt}]
    if role.exchange:
        speakers = cycle(("assistant", "user"))
        messages += [{"role": speaker, "content": text} for speaker, text in zip(speakers, role.exchange, strict=False)]
    return {"messages": messages}


def _completion(role: Role, prompt: str) -> str:
    system = [role.system] if role.system_first and role.system else []
    return "\n\n".join([*system, prompt, *role.exchange])


def _constraint_fields(
    given: Mapping[str, Json], structured: str, dialect: str, role: str, chat: bool
) -> dict[str, Json]:
    if structured == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = dict(given)
    if spacing := SPACINGS.get(structured):
        if dialect == "llamacpp":
            return {"grammar": _grammar(spacing, schema, structured, role)}
        if dialect != "vllm":
            raise ConfigError(no_spacing(structured))
        # vLLM's backend llguidance reads this; with a grammar of ours xgrammar gave six tokens a second to 63 requests
        separators = {"item_separator": spacing.comma, "key_separator": spacing.colon}
        schema["x-guidance"] = {"whitespace_flexible": False, **separators}
    if dialect == "llamacpp" and not chat:
        return {"json_schema": schema}  # its raw completions do not read response_format
    name = re.sub(r"[^A-Za-z0-9_-]", "_", role)[:64]
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}}


def _written_constraint(schema: Mapping[str, Json], *how: Any) -> tuple[dict[str, Json], str]:
    fields = _constraint_fields(schema, *how)
    return fields, json.dumps(fields)


#: The request fields that constrain decoding to a role's schema, and their JSON.
_constraint = OncePerSchema(_written_constraint)


def _grammar(spacing: Spacing, schema: Mapping[str, Json], structured: str, role: str) -> str:
    try:
        return spacing.grammar(schema)
    except ValueError as error:
        raise ConfigError(
            f"role {role}: backbone.structured={structured} has {error}; set backbone.structured=json_schema, "
            "with which the engine writes the grammar"
        ) from error


def asked_tokens(body: Mapping[str, Json]) -> int:
    """Return the most new tokens that a request asks for; 0 where it sets no limit."""
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)


def largest_reply(config: BackboneConfig, body: Mapping[str, Json]) -> int:
    """Return the bytes above which a reply cannot be one to this request.

    Args:
        config: whose ``max_reply_bytes`` counts where it says something.
        body: of the request.
    """
    tokens = asked_tokens(body) or config.window
    alternatives = body.get("top_logprobs", body.get("logprobs")) or 0
    each = _BYTES_PER_TOKEN + (1 + int(alternatives)) * _BYTES_PER_LOGPROB
    return config.max_reply_bytes or _USUAL_REPLY + tokens * each


def read_completion(payload: Any, seconds: float) -> Completion:
    """Read a server's reply.

    Raises:
        MalformedReplyError: it lacks choices or text.
    """
    try:
        choice = payload["choices"][0]
        finish_reason = _finish_reason(choice)
        text = _text(choice, finish_reason)
        logprobs = _logprobs(choice.get("logprobs"))
        tool_calls = _tool_calls(choice)
        generated = generated_text(payload)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else "its shape is unknown"
        raise MalformedReplyError(f"the reply is not a completion: {what}") from error
    if is_failed(finish_reason):
        raise MalformedReplyError(f"the server aborted its reply (finish_reason {finish_reason})")
    usage = read_usage(payload.get("usage"), says_something=bool(generated or tool_calls))
    prompt_tokens, completion_tokens, cached_tokens, estimated = usage
    return Completion(
        clean(text),
        prompt_tokens,
        completion_tokens,
        seconds,
        finish_reason,
        logprobs,
        cached_tokens,
        tool_calls,
        _declined(choice),
        estimated,
    )


def generated_text(payload: Any) -> str:
    """Return what a model wrote: the thoughts that its server put into a field of their own, and the text."""
    choice = payload["choices"][0]
    message = choice.get("message") or {}
    said: str = _joined(_spoken(choice), _ALL_PARTS) or ""
    for name in THOUGHTS:
        if isinstance(thoughts := message.get(name), str):
            return thoughts + said
    return said


def _joined(content: Any, kinds: frozenset[str]) -> Any:
    """Return the text of a content; of a list of parts, as Mistral's models send, those of these kinds."""
    if not isinstance(content, list):
        return content
    texts = [part if isinstance(part, str) else _part_text(part, kinds) for part in content]
    return "".join(texts)


def _part_text(part: Mapping[str, Any], kinds: frozenset[str]) -> str:
    kind = str(part.get("type") or "text")
    if kind not in kinds:
        return ""
    found = part.get("text", part.get(kind))
    return str(_joined(found, kinds) or "")


def _tool_calls(choice: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    """Return the tool calls without the server's ids, which differ from run to run and would enter the next request."""
    calls = (choice.get("message") or {}).get("tool_calls")
    if not calls:
        return ()
    called = [call["function"] for call in calls]
    return tuple({"name": clean(one["name"]), "arguments": clean(one.get("arguments") or "{}")} for one in called)


def _finish_reason(choice: Mapping[str, Any]) -> str:
    """Return the finish reason of a choice; ``withheld`` reasons in other fields take precedence."""
    named = {name: clean(str(choice[name]))[:_REASON_CHARS] for name in _REASONS if choice.get(name)}
    for reason in named.values():
        if is_withheld(reason):
            return reason
    return "refusal" if _declined(choice) and not _spoken(choice) else named.get(_REASONS[0], "")


def _declined(choice: Mapping[str, Any]) -> str:
    """Return the model's refusal, which structured outputs put in a field of its own."""
    refusal = (choice.get("message") or {}).get("refusal")
    return clean(str(refusal)) if refusal else ""


def _spoken(choice: Mapping[str, Any]) -> Any:
    message = choice.get("message") or choice
    return message.get("content", message.get("text"))


def _text(choice: Mapping[str, Any], finish_reason: str) -> str:
    """Return the text of a choice; empty if the model only reasoned, called a tool, declined or ended at once.

    Raises:
        KeyError: it holds neither text nor anything that says that it is whole.
    """
    text, message = _joined(_spoken(choice), _SAID_PARTS), choice.get("message") or {}
    if text is None and (finish_reason or any(message.get(name) for name in _REPLIES_WITHOUT_TEXT)):
        text = ""
    if not isinstance(text, str):
        raise KeyError("text")
    return text


def _logprobs(given: Mapping[str, Any] | None) -> tuple[TokenLogprob, ...]:
    """Read either shape: a list of tokens (chat, and llama.cpp throughout) or parallel lists (completions)."""
    if not given:
        return ()
    if given.get("content") is not None:
        return tuple(
            TokenLogprob(
                clean(item["token"]),
                _number(item["logprob"]),
                {clean(other["token"]): _number(other["logprob"]) for other in item.get("top_logprobs") or ()},
            )
            for item in given["content"]
        )
    tokens: Sequence[str] = given.get("tokens") or ()
    tops = given.get("top_logprobs") or [None] * len(tokens)
    return tuple(
        TokenLogprob(
            clean(token), _number(logprob), {clean(name): _number(value) for name, value in (top or {}).items()}
        )
        for token, logprob, top in zip(tokens, given["token_logprobs"], tops, strict=True)
    )


def _number(logprob: float | None) -> float:
    """Return a log-probability; impossible tokens have null, minus infinity or vLLM's lowest value."""
    return -9999.0 if logprob is None or logprob == -math.inf else finite(logprob)
