"""Replies of the backbone and the embedder in the shapes of OpenAI's protocol."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from memsys.embedding.contract import Vectors
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.outcomes import is_withheld
from memsys.llm.thoughts import read_text
from memsys.proxy.requests import CompletionRequest, EmbeddingRequest
from memsys.vocabulary import Completion, Json

#: What ends a stream of events.
STREAM_END = b"data: [DONE]\n\n"


def completion_body(request: CompletionRequest, answered: Sequence[CompletedAttempt], created: int) -> dict[str, Json]:
    """Return the reply to a request for completions.

    Args:
        request: what was asked.
        answered: one reply per choice.
        created: seconds since 1970.
    """
    choices: list[Json] = []
    for index, one in enumerate(answered):
        choice: dict[str, Json] = {"index": index, "finish_reason": _finish_reason(one.completion)}
        choice["logprobs"] = _logprobs(one.completion) if request.chat else _completion_logprobs(one.completion)
        if request.chat:
            choice["message"] = _message(one)
        else:
            choice["text"] = answer_of(one.completion)
        choices.append(choice)
    kind = "chat.completion" if request.chat else "text_completion"
    return {**_head(request, answered, created, kind), "choices": choices, "usage": _usage(answered)}


def stream_events(request: CompletionRequest, answered: Sequence[CompletedAttempt], created: int) -> Iterator[bytes]:
    """Yield the same reply as server-sent events: what is said, why it ended, and the tokens if they are wanted."""
    whole = completion_body(request, answered, created)
    kind = "chat.completion.chunk" if request.chat else "text_completion"
    head = _head(request, answered, created, kind)
    for choice in whole["choices"]:
        said: dict[str, Json] = {"index": choice["index"], "logprobs": choice["logprobs"], "finish_reason": None}
        said |= {"delta": _delta(choice["message"])} if request.chat else {"text": choice["text"]}
        yield _event({**head, "choices": [said]})
        nothing: dict[str, Json] = {"delta": {}} if request.chat else {"text": ""}
        ended = {"index": choice["index"], "logprobs": None, "finish_reason": choice["finish_reason"], **nothing}
        yield _event({**head, "choices": [ended]})
    if request.stream_usage:
        yield _event({**head, "choices": [], "usage": whole["usage"]})
    yield STREAM_END


def embedding_body(request: EmbeddingRequest, vectors: Vectors, tokens: int) -> dict[str, Json]:
    """Return the reply to a request for embeddings.

    Args:
        request: what was asked.
        vectors: float32 of shape (texts, dimension).
        tokens: of all texts.
    """
    rows: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _vector(vector, request.base64)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": request.model, "data": rows, "usage": usage}


def models_body(names: Sequence[str]) -> dict[str, Json]:
    """Return the list of models."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "memsys"} for name in names]
    return {"object": "list", "data": rows}


def _head(request: CompletionRequest, answered: Sequence[CompletedAttempt], created: int, kind: str) -> dict[str, Json]:
    name = f"{'chatcmpl' if request.chat else 'cmpl'}-{answered[0].request_hash[:24]}"
    return {"id": name, "object": kind, "created": created, "model": request.model}


def answer_of(completion: Completion) -> str:
    """Return the reply without its reasoning; a reply without an end mark is returned unchanged."""
    said = read_text(completion.text)
    return said.text if said.closed else completion.text


def _finish_reason(completion: Completion) -> str:
    """Return why a reply ended, in the protocol's words: a provider's own for a filter's work are not among them."""
    if is_withheld(completion.finish_reason):
        return "content_filter"
    return "tool_calls" if completion.tool_calls else completion.finish_reason or "stop"


def _message(answered: CompletedAttempt) -> dict[str, Json]:
    completion = answered.completion
    text = answer_of(completion)
    message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": completion.refusal or None}
    if completion.tool_calls:
        # Ids that follow from the request: the program quotes them in its next one, which has to be the same each run.
        message["content"] = text or None
        message["tool_calls"] = [
            {"id": f"call_{answered.request_hash[:16]}_{number}", "type": "function", "function": dict(call)}
            for number, call in enumerate(completion.tool_calls)
        ]
    return message


def _delta(message: dict[str, Any]) -> dict[str, Json]:
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls") or ())]
    delta: dict[str, Json] = {"role": "assistant", "content": message["content"]}
    return {**delta, "tool_calls": calls} if calls else delta


def _logprobs(completion: Completion) -> dict[str, Json] | None:
    if not completion.logprobs:
        return None
    return {
        "content": [
            {
                "token": one.token,
                "logprob": one.logprob,
                "bytes": list(one.token.encode()),
                "top_logprobs": [
                    {"token": name, "logprob": value, "bytes": list(name.encode())} for name, value in one.top.items()
                ],
            }
            for one in completion.logprobs
        ],
        "refusal": None,
    }


def _completion_logprobs(completion: Completion) -> dict[str, Json] | None:
    if not completion.logprobs:
        return None
    return {
        "tokens": [one.token for one in completion.logprobs],
        "token_logprobs": [one.logprob for one in completion.logprobs],
        "top_logprobs": [dict(one.top) for one in completion.logprobs],
        "text_offset": None,
    }


def _usage(answered: Sequence[CompletedAttempt]) -> dict[str, Json]:
    prompt = answered[0].completion.prompt_tokens
    written = sum(one.completion.completion_tokens for one in answered)
    details = {"cached_tokens": answered[0].completion.cached_tokens or 0}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": details,
    }


def _vector(vector: Any, packed: bool) -> Json:
    row = np.asarray(vector, dtype="<f4")
    return base64.b64encode(row.tobytes()).decode() if packed else [float(value) for value in row]


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
