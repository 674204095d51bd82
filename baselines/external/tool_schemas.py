"""JSON schemas of the calls that an agent may make, from those of a server's tools.

Engines that constrain decoding know a part of JSON schema, each another one: of a tool's schema the shape is kept
(types, properties, lists, choices), references are written out, and what an engine may refuse (patterns, formats,
ranges) is left to the server, which checks the call. All properties are asked for, optional ones with ``null`` for
"not given", as OpenAI's strict mode wants it; :func:`without_nulls` takes these out again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memsys.notes.roles import object_schema
from memsys.vocabulary import Json

#: References within references that are followed; a schema that refers to itself takes any value below that.
_DEEPEST = 8
_BOUNDS = {"array": ("minItems", "maxItems"), "string": ("maxLength",)}
_NULL: Json = {"type": "null"}
#: A value of any kind.
_ANY: dict[str, Json] = {}


def calls_schema(tools: Mapping[str, Mapping[str, Any]], done: str) -> dict[str, Json]:
    """Make the schema of an object whose ``call`` is that of one of the tools, with its arguments, or the end.

    Args:
        tools: JSON schema of each tool's arguments, by name.
        done: name of the call that ends the calls.
    """
    arguments = {name: _plain(schema, schema, 0) for name, schema in tools.items()}
    calls = [
        object_schema(tool={"enum": [name]}, arguments=each)
        for name, each in [*arguments.items(), (done, object_schema())]
    ]
    return object_schema(call={"anyOf": calls})


def readable_calls(tools: Sequence[str], done: str) -> dict[str, Json]:
    """Make the schema of what is enough of a call: the server checks its arguments, and says what is wrong."""
    return object_schema(call=object_schema(tool={"enum": [*tools, done]}, arguments={"type": "object"}))


def without_nulls(value: Json, schema: Mapping[str, Any]) -> Any:
    """Return arguments without the optional ones that are null.

    Args:
        value: the arguments.
        schema: the tool's own JSON schema of them.
    """
    return _given(value, schema, schema)


def _plain(node: Any, root: Mapping[str, Any], depth: int) -> dict[str, Json]:
    """Return the shape that a schema gives a value; ``root`` holds what references name."""
    node, depth = _resolved(node, root, depth)
    if depth > _DEEPEST:
        return _ANY
    if "const" in node or "enum" in node:
        return {"enum": list(node.get("enum", [node.get("const")]))}
    if choices := node.get("anyOf") or node.get("oneOf"):
        return _one_of([_plain(each, root, depth + 1) for each in choices])
    kind = node.get("type")
    if isinstance(kind, list):
        return _one_of([_plain({**node, "type": each}, root, depth + 1) for each in kind])
    if kind == "object" or (kind is None and "properties" in node):
        return _object(node, root, depth)
    if kind == "array":
        items = {"items": _plain(node.get("items", {}), root, depth + 1)}
        return {"type": kind, **items, **_bounds(node, kind)}
    return {"type": kind, **_bounds(node, kind)} if isinstance(kind, str) else _ANY


def _object(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Json]:
    properties, more = node.get("properties"), node.get("additionalProperties", True)
    if not properties and more is not False and (properties is None or "additionalProperties" in node):
        values = _plain(more, root, depth + 1)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    needed = node.get("required", ())
    parts = {name: _plain(part, root, depth + 1) for name, part in (properties or {}).items()}
    return object_schema(
        **{name: part if name in needed or not part else _one_of([part, _NULL]) for name, part in parts.items()}
    )


def _one_of(parts: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the schema of any of these; choices within choices are laid side by side."""
    if not all(parts):
        return _ANY
    flat: list[Json] = []
    for part in parts:
        choices = part.get("anyOf", [part])
        flat += [each for each in (choices if isinstance(choices, list) else [part]) if each not in flat]
    return {"anyOf": flat}


def _bounds(node: Mapping[str, Any], kind: str) -> dict[str, Json]:
    return {key: node[key] for key in _BOUNDS.get(kind, ()) if isinstance(node.get(key), int)}


def _resolved(node: Any, root: Mapping[str, Any], depth: int) -> tuple[Mapping[str, Any], int]:
    """Return a schema with its reference followed, and what it is combined with alone; one level deeper for each."""
    while isinstance(node, Mapping) and depth <= _DEEPEST:
        combined = node.get("allOf")
        if isinstance(node.get("$ref"), str):
            node = _named(node["$ref"], root)
        elif isinstance(combined, list):
            node = combined[0] if len(combined) == 1 else _ANY
        else:
            break
        depth += 1
    return (node if isinstance(node, Mapping) else _ANY), depth


def _named(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that ``#/$defs/Name`` names; any value where there is none."""
    node: Any = root
    for step in reference.removeprefix("#/").split("/"):
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node


def _given(value: Any, node: Any, root: Mapping[str, Any]) -> Any:
    node, _ = _resolved(node, root, 0)
    if isinstance(value, list):
        return [_given(each, node.get("items"), root) for each in value]
    if not isinstance(value, Mapping):
        return value
    properties, needed = node.get("properties", {}), node.get("required", ())
    return {
        key: _given(each, properties.get(key), root)
        for key, each in value.items()
        if each is not None or key in needed or key not in properties
    }
