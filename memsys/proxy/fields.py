"""Types and ranges of request fields, as a table: OpenAI's protocol and vLLM's additions.

A field that is null counts as not given, as at OpenAI.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.proxy.errors import RefusedRequestError

#: Characters of a value that a message shows.
_SHOWN_CHARS = 80
_MOST_WHOLE = 2**31
_MOST_STOPS = 4
_MOST_LOGPROBS = 20
_MOST_BIAS = 100
MOST_CHOICES = 128

_ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_CHOICES_OF_TOOLS = ("none", "auto", "required")
_FORMATS = ("text", "json_object", "json_schema")


@dataclass(frozen=True, slots=True)
class Rule:
    """Allowed type and range of a field.

    Attributes:
        says: that in words, behind "must be".
        fits: whether a value is that.
    """

    says: str
    fits: Callable[[Any], bool]


def check_fields(body: Mapping[str, Any], rules: Mapping[str, Rule], where: str = "") -> None:
    """Hold what is given against the table.

    Args:
        body: an object of the request.
        rules: by field.
        where: what precedes a field's name in messages, such as ``messages[0].``.

    Raises:
        RefusedRequestError: names the field, what it may be and what was given.
    """
    for name, rule in rules.items():
        value = body.get(name)
        if value is not None and not rule.fits(value):
            raise refusal(f"{where}{name}", rule.says, value)


def refusal(name: str, says: str, value: Any) -> RefusedRequestError:
    """Return the error of a field whose value is something else than it may be."""
    shown = f"{value!r:.{_SHOWN_CHARS}}" + (" ..." if len(repr(value)) > _SHOWN_CHARS else "")
    return RefusedRequestError(f"{name}={shown} must be {says}", param=name)


def check_message(message: Any, where: str) -> None:
    """Check a message of a chat but for the parts of its content.

    Args:
        message: as it was given.
        where: its place, such as ``messages[0]``.

    Raises:
        RefusedRequestError: names the field.
    """
    if not isinstance(message, dict):
        raise refusal(where, "an object with a role", message)
    if message.get("role") is None:
        raise RefusedRequestError(f"{where}.role is missing; it must be {_one_of(_ROLES).says}", param=f"{where}.role")
    check_fields(message, _MESSAGE, f"{where}.")
    _check_called(message.get("tool_calls") or (), f"{where}.tool_calls")
    if message.get("content") is None and not any(message.get(name) for name in _INSTEAD_OF_CONTENT):
        raise RefusedRequestError(
            f"{where}.content is missing; it must be a text or a list of parts, or the message must have tool_calls",
            param=f"{where}.content",
        )


def _check_called(calls: Sequence[Mapping[str, Any]], where: str) -> None:
    for number, call in enumerate(calls):
        place = f"{where}[{number}]"
        if call.get("type") is None:
            raise RefusedRequestError(f"{place}.type is missing; it must be a text, such as 'function'", param=place)
        check_fields(call, _CALL, f"{place}.")
        check_fields(call.get("function") or {}, _CALLED, f"{place}.function.")


def check_tools(tools: Sequence[Any]) -> None:
    """Check a list of tools.

    Raises:
        RefusedRequestError: names the field.
    """
    for number, tool in enumerate(tools):
        place, function = f"tools[{number}]", tool.get("function")
        if not isinstance(tool.get("type"), str):
            raise refusal(f"{place}.type", "a text, such as 'function'", tool.get("type"))
        if tool["type"] != "function":
            continue
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise refusal(f"{place}.function", "an object with a name", function)
        check_fields(function, _FUNCTION, f"{place}.function.")


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int)


def _number(least: float, most: float) -> Rule:
    return Rule(f"a number from {least:g} to {most:g}", lambda value: _is_number(value) and least <= value <= most)


def _whole(least: int, most: int = _MOST_WHOLE) -> Rule:
    says = f"a whole number, at least {least}" if most == _MOST_WHOLE else f"a whole number from {least} to {most}"
    return Rule(says, lambda value: _is_whole(value) and least <= value <= most)


def _one_of(choices: Sequence[str]) -> Rule:
    return Rule(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices)


def _list_of_objects(of: str) -> Rule:
    return Rule(
        f"a list of {of}, each an object",
        lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value),
    )


def _is_stop(value: Any) -> bool:
    several = isinstance(value, list) and len(value) <= _MOST_STOPS and all(isinstance(one, str) for one in value)
    return isinstance(value, str) or several


def _is_bias(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(one) and abs(one) <= _MOST_BIAS for one in value.values())


def _is_format(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") not in _FORMATS:
        return False
    return value["type"] != "json_schema" or isinstance(value.get("json_schema"), dict)


def _is_tool_choice(value: Any) -> bool:
    if isinstance(value, str):
        return value in _CHOICES_OF_TOOLS
    function = (value.get("function") or {}) if isinstance(value, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name", ""), str)


_TEXT = Rule("a text", lambda value: isinstance(value, str))
_TRUTH = Rule("true or false", lambda value: isinstance(value, bool))
_OBJECT = Rule("an object", lambda value: isinstance(value, dict))
_PENALTY = _number(-2, 2)

#: Fields of a request for a chat completion; ``messages`` are checked by :func:`check_message`.
CHAT: Mapping[str, Rule] = {
    "model": _TEXT,
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _PENALTY,
    "frequency_penalty": _PENALTY,
    "top_k": _whole(-1),
    "min_p": _number(0, 1),
    "repetition_penalty": Rule("a number above 0", lambda value: _is_number(value) and value > 0),
    "n": _whole(1, MOST_CHOICES),
    "max_tokens": _whole(1),
    "max_completion_tokens": _whole(1),
    "stop": Rule(f"a text or a list of up to {_MOST_STOPS} texts", _is_stop),
    "seed": Rule("a whole number", _is_whole),
    "logit_bias": Rule(f"an object of token ids with numbers from -{_MOST_BIAS} to {_MOST_BIAS}", _is_bias),
    "response_format": Rule(
        f"an object with type {', '.join(_FORMATS)}, the last with an object json_schema", _is_format
    ),
    "stream": _TRUTH,
    "stream_options": _OBJECT,
    "user": _TEXT,
    "tools": _list_of_objects("tools"),
    "tool_choice": Rule(f"one of {', '.join(_CHOICES_OF_TOOLS)}, or an object that names a tool", _is_tool_choice),
    "parallel_tool_calls": _TRUTH,
    "logprobs": _TRUTH,
    "top_logprobs": _whole(0, _MOST_LOGPROBS),
    "store": _TRUTH,
    "metadata": _OBJECT,
    "service_tier": _TEXT,
    "safety_identifier": _TEXT,
    "prompt_cache_key": _TEXT,
}
#: Fields of a request for a completion.
COMPLETION: Mapping[str, Rule] = {**CHAT, "logprobs": _whole(0, _MOST_LOGPROBS)}
STREAM_OPTIONS: Mapping[str, Rule] = {"include_usage": _TRUTH}
EMBEDDING: Mapping[str, Rule] = {
    "model": _TEXT,
    "encoding_format": _one_of(("float", "base64")),
    "dimensions": _whole(1),
    "user": _TEXT,
}
#: What ``PUT /v1/scope`` takes.
SCOPE: Mapping[str, Rule] = {"conversation_id": _TEXT, "phase": _TEXT, "item": _TEXT}

_MESSAGE: Mapping[str, Rule] = {
    "role": _one_of(_ROLES),
    "content": Rule("a text or a list of parts", lambda value: isinstance(value, str | list)),
    "name": _TEXT,
    "tool_call_id": _TEXT,
    "tool_calls": _list_of_objects("calls of tools"),
    "refusal": _TEXT,
}
#: What an assistant may have said without a content.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_CALL: Mapping[str, Rule] = {"id": _TEXT, "type": _TEXT, "function": _OBJECT, "custom": _OBJECT}
_CALLED: Mapping[str, Rule] = {"name": _TEXT, "arguments": _TEXT}
_FUNCTION: Mapping[str, Rule] = {"description": _TEXT, "parameters": _OBJECT}
