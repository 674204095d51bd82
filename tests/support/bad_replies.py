"""Bad replies of a server: what models and servers send instead of what was asked for.

Each is a function of the good reply alone, so that a run that meets it meets it the same way every time. The stub
server sends them (:mod:`tests.support.stub_server`).
"""

import copy
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MEGABYTE = 1_000_000
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@dataclass(frozen=True)
class BadReply:
    """One way to reply badly; what is not given is as in a good reply.

    Attributes:
        text: the model's text, made from the good one.
        payload: the JSON of the reply, made from the good one.
        body: the bytes of the reply, made from the good ones.
        status: of HTTP.
        headers: further lines of the head.
        ending: ``""``, or what the connection does: ``reset`` before the body, ``cut`` in the middle of it, ``slow``
            (in pieces), ``hang`` (nothing comes).
        no_object: however one reads it, no object is in this text: a role with a schema counts it as malformed.
        no_reply: nothing that a run could use arrives: the run must settle the question, or stop and end as if
            undisturbed when resumed.
        harmless: the run ends as if undisturbed.
    """

    text: Callable[[str], str] | None = None
    payload: Callable[[dict[str, Any]], Any] | None = None
    body: Callable[[bytes], bytes] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: str = ""
    no_object: bool = False
    no_reply: bool = False
    harmless: bool = False


def _leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _leaves(inner, change) for key, inner in value.items()}
    return [_leaves(inner, change) for inner in value] if isinstance(value, list) else change(value)


def _on_object(change: Callable[[Any], Any]) -> Callable[[str], str]:
    """Change the reply's object; a text that is none is put into one."""

    def changed(text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            value = {"text": text}
        made = change(value)
        return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)

    return changed


def _other_type(leaf: Any) -> Any:
    if isinstance(leaf, str):
        return [len(leaf)]
    return {"value": leaf} if isinstance(leaf, bool) else f"number {leaf}"


def _as_string(leaf: Any) -> Any:
    return str(leaf) if isinstance(leaf, int | float) else leaf


def _constant(name: str) -> Callable[[Any], str]:
    """Write a constant that is not JSON in place of every value that is not an object."""

    def written(value: Any) -> str:
        return json.dumps(_leaves(value, lambda leaf: "\0")).replace('"\\u0000"', name)

    return written


def _twice(value: Any) -> str:
    """Each key of the object twice, the second time with another value."""
    members = value.items() if isinstance(value, dict) else [("text", value)]
    pairs = [f"{json.dumps(key)}: {json.dumps(each)}" for key, inner in members for each in (inner, None)]
    return "{" + ", ".join(pairs) + "}"


def _choice(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def changed(payload: dict[str, Any]) -> Any:
        payload["choices"][0].update(copy.deepcopy(changes))
        return payload

    return changed


def _usage(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda payload: payload | {"usage": {**payload["usage"], **changes}}


def _null_content(payload: dict[str, Any]) -> Any:
    choice = payload["choices"][0]
    choice.update({"message": {"role": "assistant", "content": None}} if "message" in choice else {"text": None})
    return payload


def _tool_calls(payload: dict[str, Any]) -> Any:
    call = {"id": "1", "type": "function", "function": {"name": "reply", "arguments": "{}"}}
    _null_content(payload)["choices"][0].setdefault("message", {})["tool_calls"] = [call]
    return payload


def _two_choices(payload: dict[str, Any]) -> Any:
    second = copy.deepcopy(payload["choices"][0]) | {"index": 1}
    second.update(
        {"message": {"role": "assistant", "content": "second"}} if "message" in second else {"text": "second"}
    )
    return payload | {"choices": [payload["choices"][0], second]}


def _refusal(status: int, **headers: str) -> BadReply:
    return BadReply(
        payload=lambda _: {"error": {"message": f"fake failure {status}", "code": status}},
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        no_reply=True,
    )


def _garbage(body: bytes) -> bytes:
    return random.Random(len(body)).randbytes(200)


_HTML = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"

BAD_REPLIES: dict[str, BadReply] = {
    # what a model writes
    "cut_at_one_third": BadReply(text=lambda text: text[: len(text) // 3]),
    "cut_at_two_thirds": BadReply(text=lambda text: text[: 2 * len(text) // 3]),
    "cut_before_the_end": BadReply(text=lambda text: text[:-1]),
    "fenced": BadReply(text=lambda text: f"```json\n{text}\n```"),
    "padded_with_prose": BadReply(text=lambda text: f"Sure! Here is what you asked for:\n{text}\nI hope this helps."),
    "empty": BadReply(text=lambda _: "", no_object=True),
    "white_space": BadReply(text=lambda _: " \n\t\u00a0\u2003 \n", no_object=True),
    "wrong_types": BadReply(text=_on_object(lambda value: _leaves(value, _other_type))),
    "wrong_nesting": BadReply(text=_on_object(lambda value: {"result": {"reply": value}})),
    "bare_list": BadReply(text=_on_object(lambda value: [value])),
    "numbers_as_strings": BadReply(text=_on_object(lambda value: _leaves(value, _as_string))),
    "hundreds_of_digits": BadReply(text=_on_object(lambda value: _constant("9" * 400)(value))),
    "thousands_of_digits": BadReply(text=_on_object(lambda value: _constant("9" * 5000)(value))),
    "not_a_number": BadReply(text=_on_object(_constant("NaN"))),
    "infinity": BadReply(text=_on_object(_constant("-Infinity"))),
    "huge_exponent": BadReply(text=_on_object(_constant("1e999"))),
    "megabyte_of_quotation_marks": BadReply(text=lambda _: '{"' + '"' * MEGABYTE, no_object=True),
    "megabyte_of_brackets": BadReply(text=lambda _: "[" * MEGABYTE, no_object=True),
    "megabyte_of_braces": BadReply(text=lambda _: "{" * MEGABYTE, no_object=True),
    "deep_nesting": BadReply(text=lambda text: '{"a":' * 20_000 + "1" + "}" * 20_000),
    "lone_surrogates": BadReply(
        text=_on_object(lambda v: _leaves(v, lambda x: f"\ud800{x}" if isinstance(x, str) else x))
    ),
    "nul": BadReply(text=_on_object(lambda v: _leaves(v, lambda x: f"a\0{x}" if isinstance(x, str) else x))),
    "raw_nul": BadReply(text=lambda text: text.replace(" ", "\0")),
    "terminal_escapes": BadReply(text=lambda text: f"\x1b]0;title\x07\x1b[2J\x1b[31m{text}\x1b[0m"),
    "html": BadReply(text=lambda _: _HTML, no_object=True),
    "duplicate_keys": BadReply(text=_on_object(_twice)),
    "digits_of_another_script": BadReply(text=lambda text: text.translate(_ARABIC)),
    "thinking_never_closed": BadReply(text=lambda text: f"<think>I should reply {text}", no_object=True),
    "many_lines": BadReply(text=lambda _: "1.\n- a: b\n" * 20_000),
    # what a server wraps it in
    "null_content": BadReply(payload=_null_content, no_object=True),
    "missing_choices": BadReply(payload=lambda payload: {"id": "1", "usage": payload["usage"]}, no_reply=True),
    "empty_choices": BadReply(payload=lambda payload: payload | {"choices": []}, no_reply=True),
    "payload_is_a_list": BadReply(payload=lambda payload: [payload], no_reply=True),
    "payload_is_null": BadReply(payload=lambda _: None, no_reply=True),
    "usage_of_words": BadReply(payload=_usage(prompt_tokens="many", completion_tokens="few")),
    "usage_of_fractions": BadReply(payload=_usage(prompt_tokens=1.5, completion_tokens=float("inf"))),
    "negative_usage": BadReply(payload=_usage(prompt_tokens=-5, completion_tokens=-7)),
    "missing_usage": BadReply(payload=lambda payload: {k: v for k, v in payload.items() if k != "usage"}),
    "finished_by_length": BadReply(text=lambda text: text[: len(text) // 2], payload=_choice(finish_reason="length")),
    "finished_by_content_filter": BadReply(text=lambda _: "", payload=_choice(finish_reason="content_filter")),
    "two_choices": BadReply(payload=_two_choices, harmless=True),
    "tool_calls": BadReply(payload=_tool_calls),
    # what comes over the wire
    "status_400": _refusal(400),
    "status_401": _refusal(401),
    "status_404": _refusal(404),
    "status_413": _refusal(413),
    "status_429": _refusal(429, Retry_After="0"),
    "status_429_date": _refusal(429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
    "status_500": _refusal(500),
    "status_503": _refusal(503),
    "html_page": BadReply(body=lambda _: _HTML.encode(), headers={"Content-Type": "text/html"}, no_reply=True),
    "invalid_json": BadReply(body=lambda body: body[1:], no_reply=True),
    "not_utf8": BadReply(body=lambda body: b"\xff\xfe" + body.replace(b" ", b"\xe9"), no_reply=True),
    "empty_body": BadReply(body=lambda _: b"", no_reply=True),
    "cut_body": BadReply(ending="cut", no_reply=True),
    "reset": BadReply(ending="reset", no_reply=True),
    "slow": BadReply(ending="slow", harmless=True),
    "hang": BadReply(ending="hang", no_reply=True),
    "redirect": BadReply(status=302, headers={"Location": "http://127.0.0.1:9/v1"}, body=lambda _: b"", no_reply=True),
    "wrong_content_type": BadReply(headers={"Content-Type": "image/png"}, harmless=True),
    "gzip_garbage": BadReply(body=_garbage, headers={"Content-Encoding": "gzip"}, no_reply=True),
}


def spoil(bad: BadReply, payload: dict[str, Any], text: str) -> bytes:
    """The bytes of a bad reply.

    Args:
        bad: how it is bad.
        payload: the JSON of the good reply; changed in place.
        text: the good reply's text.
    """
    made: Any = payload
    if bad.text is not None:
        choice = payload["choices"][0]
        if "message" in choice:
            choice["message"]["content"] = bad.text(text)
        else:
            choice["text"] = bad.text(text)
    if bad.payload is not None:
        made = bad.payload(payload)
    body = json.dumps(made).encode()
    return body if bad.body is None else bad.body(body)
