"""Grammars (llama.cpp's GBNF) for JSON without any white space between its parts.

llama.cpp turns a schema into a grammar that allows line breaks and up to twenty blanks between parts. A small model
spends half of its tokens on them, and its replies are cut before they end. Only what the roles' schemas use is covered.
"""

import json
from collections.abc import Mapping
from typing import Any

_STRING_CHARACTER = r'([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))'
_PRIMITIVES = {
    "boolean": '("true" | "false")',
    "integer": '("-"? ("0" | [1-9] [0-9]{0,8}))',
    "number": '("-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?)',
    "null": '"null"',
}


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """Write the grammar of the schema's values as compact JSON.

    Args:
        schema: objects (all properties, in their order), lists, strings, numbers, booleans, enums; ``maxItems``,
            ``minItems``, ``maxLength``.

    Raises:
        ValueError: the schema uses something else.
    """
    return f"root ::= {_rule(schema)}"


def _rule(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return "(" + " | ".join(_literal(json.dumps(value, ensure_ascii=False)) for value in node["enum"]) + ")"
    kind = node.get("type")
    if kind == "object":
        return _object(node.get("properties", {}))
    if kind == "array":
        return _array(node)
    if kind == "string":
        return f'"\\"" {_STRING_CHARACTER}{_times(0, node.get("maxLength"))} "\\""'
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    raise ValueError(f"no compact grammar for the schema part {json.dumps(node)}")


def _object(properties: Mapping[str, Mapping[str, Any]]) -> str:
    parts = []
    for index, (name, part) in enumerate(properties.items()):
        key = ("," if index else "") + json.dumps(name, ensure_ascii=False) + ":"
        parts.append(f"{_literal(key)} {_rule(part)}")
    return f'"{{" {" ".join(parts)} "}}"'


def _array(node: Mapping[str, Any]) -> str:
    least, most = node.get("minItems", 0), node.get("maxItems")
    if most == 0:
        return '"[]"'
    item = f"({_rule(node.get('items', {'type': 'string'}))})"
    rest = f'("," {item}){_times(max(least - 1, 0), None if most is None else most - 1)}'
    some = f'"[" {item} {rest} "]"'
    return some if least else f'("[]" | {some})'


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"{{{least},}}" if least else "*"
    return f"{{{least},{most}}}"


def _literal(text: str) -> str:
    """Quote a text as a terminal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
