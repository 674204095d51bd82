"""Calls of tools that a model writes into its reply, where its server does not read them.

A server reads calls in the one form that its parser knows, and an embedded one reads none. Models that were trained on
several forms, Qwen2.5-Coder for one, write a block of JSON instead: ``{"name": ..., "arguments": {...}}``.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memsys.llm.attempt import CompletedAttempt
from memsys.proxy.replies import answer_of
from memsys.vocabulary import Json

#: The names that models give to a call's arguments.
_ARGUMENTS = ("arguments", "parameters")


def with_written_calls(answered: CompletedAttempt, body: Mapping[str, Any]) -> CompletedAttempt:
    """Return a reply with its written calls as tool calls; unchanged if it has none or has tool calls already.

    Args:
        answered: by the backbone.
        body: of the request, checked: what tools it offers, and which of them may be called (``tool_choice``).
    """
    completion, names = answered.completion, _callable(body)
    calls = () if completion.tool_calls else tuple(written_calls(answer_of(completion), names))
    return replace(answered, completion=replace(completion, text="", tool_calls=calls)) if calls else answered


def written_calls(text: str, names: Collection[str]) -> Iterator[Mapping[str, str]]:
    """Yield the calls of the named tools in a text, in order: objects of JSON with a name and an object of arguments.

    Args:
        text: of a reply; whatever is around the objects does not matter.
        names: of the tools that were offered. A name that is not one of them, or a reply that was cut within its
            object, is not a call.
    """
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if (call := _call(found, names)) is not None:
                yield call
        place = text.find("{", end)


def _callable(body: Mapping[str, Any]) -> set[str]:
    names = {tool["function"]["name"] for tool in body.get("tools") or () if tool["type"] == "function"}
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return names & {(choice.get("function") or {}).get("name")}
    return set() if choice == "none" else names


def _call(found: Mapping[str, Json], names: Collection[str]) -> Mapping[str, str] | None:
    arguments = next((found[key] for key in _ARGUMENTS if isinstance(found.get(key), dict)), None)
    name = found.get("name")
    if not isinstance(name, str) or name not in names or arguments is None:
        return None
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
