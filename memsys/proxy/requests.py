"""Reading what an external program asks for: chat completions, completions and embeddings of OpenAI's protocol."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.errors import quoted
from memsys.llm.passthrough import ForeignCall
from memsys.llm.structured import clean
from memsys.proxy.errors import RefusedRequestError
from memsys.proxy.fields import (
    CHAT,
    COMPLETION,
    EMBEDDING,
    STREAM_OPTIONS,
    check_fields,
    check_message,
    check_tools,
    refusal,
)
from memsys.vocabulary import Json

#: Fields that can change a reply and go to the server.
_PASSED = frozenset(
    {
        "messages", "prompt", "tools", "tool_choice", "parallel_tool_calls", "response_format", "stop", "logprobs",
        "top_logprobs", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty",
        "frequency_penalty", "logit_bias",
    }
)  # fmt: skip
#: Fields that are read here, or that say nothing about the reply.
_KNOWN = frozenset(
    {
        "model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "seed", "user", "store",
        "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "echo", "suffix", "best_of",
    }
)  # fmt: skip
_LIMITS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A checked request for completions.

    Attributes:
        call: what goes to the backbone, once per choice.
        model: as the program calls it; any name will do.
        choices: replies that it wants.
        stream: it wants the reply as a stream of events.
        stream_usage: with the tokens at the stream's end.
        ignored: fields that are not passed on.
    """

    call: ForeignCall
    model: str
    choices: int
    stream: bool
    stream_usage: bool
    ignored: tuple[str, ...]

    @property
    def chat(self) -> bool:
        """Whether it is for a chat completion."""
        return self.call.path == "/chat/completions"


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A checked request for embeddings."""

    texts: tuple[str, ...]
    model: str
    base64: bool
    dimensions: int | None


def read_object(data: bytes) -> Mapping[str, Any]:
    """Parse a request's body.

    Raises:
        RefusedRequestError: it is not a JSON object.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RefusedRequestError(f"the request's body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RefusedRequestError("the request's body must be a JSON object")
    return body


def without_json_mode(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request without ``response_format``, where that asks for any JSON object; with a schema it is kept."""
    if body.get("response_format") == {"type": "json_object"}:
        return {name: value for name, value in body.items() if name != "response_format"}
    return body


def read_completion_request(path: str, body: Mapping[str, Any], default_max_tokens: int) -> CompletionRequest:
    """Check a request for chat completions (``/chat/completions``) or completions (``/completions``).

    Args:
        path: below ``/v1``.
        body: the JSON object.
        default_max_tokens: limit of new tokens where the program sets none.

    Raises:
        RefusedRequestError: names the field.
    """
    chat = path == "/chat/completions"
    check_fields(body, CHAT if chat else COMPLETION)
    check_fields(body.get("stream_options") or {}, STREAM_OPTIONS, "stream_options.")
    check_tools(body.get("tools") or ())
    choices = 1 if body.get("n") is None else body["n"]
    _refuse_unserved(body, choices)
    asked: dict[str, Json] = {name: body[name] for name in sorted(_PASSED) if body.get(name) is not None}
    if chat:
        asked["messages"] = _messages(body.get("messages"))
    else:
        asked["prompt"] = _one_text("prompt", body.get("prompt"))
    limit = next((body[name] for name in _LIMITS if body.get(name) is not None), default_max_tokens)
    return CompletionRequest(
        call=ForeignCall("chat" if chat else "completion", _digest(path, asked, limit), path, asked, limit),
        model=body.get("model") or "",
        choices=choices,
        stream=bool(body.get("stream")),
        stream_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        ignored=tuple(sorted(set(body) - _PASSED - _KNOWN)),
    )


def read_embedding_request(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Check a request for embeddings. Half surrogate pairs, which no tokenizer takes, are replaced.

    Raises:
        RefusedRequestError: names the field.
    """
    check_fields(body, EMBEDDING)
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise refusal(
            "input",
            "a text or a list of texts; token ids are those of another model (LangChain sends texts with "
            "check_embedding_ctx_length=False)",
            given,
        )
    form = body.get("encoding_format") or "float"
    cleaned = tuple(clean(text) for text in texts)
    return EmbeddingRequest(cleaned, body.get("model") or "", form == "base64", body.get("dimensions"))


def _refuse_unserved(body: Mapping[str, Any], choices: int) -> None:
    """Refuse fields of completions that would change the reply and that no backbone is asked for.

    Raises:
        RefusedRequestError: names the field; one whose value changes nothing is taken.
    """
    for name, harmless in (("echo", False), ("suffix", ""), ("best_of", choices)):
        value = body.get(name)
        if value is not None and (value != harmless or isinstance(value, bool) != isinstance(harmless, bool)):
            raise RefusedRequestError(
                f"{name}={quoted(value, 80)} is not served here: the reply would be another one than it asks for; "
                f"leave it out, or send {json.dumps(harmless)}",
                param=name,
            )


def _messages(given: Any) -> list[Json]:
    if not isinstance(given, list) or not given:
        raise refusal("messages", "a list of at least one message", given)
    return [_message(message, f"messages[{number}]") for number, message in enumerate(given)]


def _message(message: Any, where: str) -> Json:
    check_message(message, where)
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": "".join(_part(part, f"{where}.content") for part in content)}
    return message


def _part(part: Any, where: str) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    raise RefusedRequestError(f"{where} holds a part that is not text; the backbone reads texts alone", param=where)


def _one_text(name: str, given: Any) -> str:
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if not isinstance(given, str):
        raise refusal(name, "one text", given)
    return given


def _digest(path: str, asked: Mapping[str, Json], limit: int) -> str:
    parts: Sequence[str] = (path, json.dumps(asked, sort_keys=True), str(limit))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
