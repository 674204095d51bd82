"""Replies as small models give them: cut short, fenced, padded with prose, no JSON at all, or of other types."""

import copy
import json
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from memsys.vocabulary import Json

SPOILERS: Mapping[str, Callable[[str], str]] = {
    "cut": lambda text: text[: len(text) // 2],
    "fenced": lambda text: f"```json\n{text}\n```",
    "prose_before": lambda text: f"Here is the object: {text}",
    "prose_after": lambda text: f"{text}\nI hope this helps.",
    "trailing_comma": lambda text: f"{text[:-1]},}}",
    "single_quotes": lambda text: text.replace('"', "'"),
    "white_space": lambda text: f"\n  {text}\n\n",
    "no_json": lambda text: "".join(mark for mark in text if mark.isalnum() or mark == " "),
    "empty": lambda text: "",
}
#: One spoiled reply in N, where it is an object or a list, has a value of another type.
_RETYPED_ONE_IN = 2
#: What a value becomes, by the name of its new type; ``item`` is the first one of a list.
OTHER_TYPES: Mapping[str, Callable[[Any], Json]] = {
    "null": lambda value: None,
    "list": lambda value: [value],
    "object": lambda value: {"text": value},
    "number": lambda value: 7,
    "text": lambda value: ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value),
    "item": lambda value: value[0] if value else {},
}
_OTHERS_OF_ALL = ("null", "list")
#: A field is left out.
MISSING = "missing"
#: All types.
ALL = "all"
#: Name of the object or list as a whole, among those of its fields.
WHOLE = "whole reply"

#: Field, ``field[]`` for the items of its list, or :data:`WHOLE` -> types that it does not become.
KeptTypes = Mapping[str, str | Collection[str]]


def spoil(text: str, chosen: random.Random, kept: KeptTypes | None = None) -> str:
    """Spoil a reply in one of these ways; an object or a list half the time by the type of one value, or of the whole.

    Args:
        text: the reply.
        chosen: how.
        kept: types that values do not become.
    """
    told = _read(text)
    changes = possible_changes(told, kept or {})
    if changes and chosen.randrange(_RETYPED_ONE_IN) == 0:
        place, other = chosen.choice(changes[chosen.choice(sorted(changes))])
        return json.dumps(_changed(told, place, other), ensure_ascii=False)
    return SPOILERS[chosen.choice(sorted(SPOILERS))](text)


def _read(text: str) -> Json:
    """Return the object or list that a reply is, and ``None`` for other texts."""
    try:
        found: Json = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def possible_changes(told: Json, kept: KeptTypes) -> dict[str, list[tuple[tuple[Any, ...], str]]]:
    """Return what can become of a reply: by field, the paths to its values with the types to change to."""
    found: dict[str, list[tuple[tuple[Any, ...], str]]] = defaultdict(list)
    whole = [(WHOLE, (), told)] if isinstance(told, dict | list) else []
    for name, path, value in (*whole, *_values(told, "", ())):
        left_out = kept.get(name, ())
        types = [] if left_out == ALL else [one for one in _other_types(name, value) if one not in left_out]
        for other in types:
            found[name].append((path, other))
    return found


def _values(told: Json, name: str, path: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...], Json]]:
    """Yield the values of an object or a list at any depth: their field, their path, and the value."""
    parts: Any = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    for key, value in parts:
        own = str(key) if isinstance(told, dict) else f"{name}[]"
        yield own, (*path, key), value
        yield from _values(value, own, (*path, key))


def _other_types(name: str, value: Json) -> tuple[str, ...]:
    if name == WHOLE:
        return (*_OTHERS_OF_ALL, "number", "text", *(("item",) if isinstance(value, list) else ()))
    missing = () if name.endswith("[]") else (MISSING,)
    if isinstance(value, list):
        return (*_OTHERS_OF_ALL, *missing, "text", "item")
    return (*_OTHERS_OF_ALL, *missing, *(("number", "object") if isinstance(value, str) else ("text",)))


def _changed(told: Json, path: tuple[Any, ...], other: str) -> Json:
    """Return a copy of a reply with one value of another type, or without it; an empty path is the whole reply."""
    if not path:
        return OTHER_TYPES[other](told)
    copied = copy.deepcopy(told)
    holder: Any = copied
    for key in path[:-1]:
        holder = holder[key]
    if other == MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = OTHER_TYPES[other](holder[path[-1]])
    return copied
