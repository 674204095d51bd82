"""Grammars (GBNF) for llama.cpp: JSON with given white space between its parts.

An engine that is given a schema writes its grammar itself: llama.cpp's and vLLM's allow line breaks and many blanks
between parts, on which a small model spends half of its tokens, and vLLM told to allow none writes `{"a":"b"}` or
`{"a": "b"}` as its version has it. Which of the two it is moves answers (docs/results.md), so it is an option here.
Only what the roles' schemas use is covered.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_STRING_CHARACTER = r'([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))'
_PRIMITIVES = {
    "boolean": '("true" | "false")',
    "integer": '("-"? ("0" | [1-9] [0-9]{0,8}))',
    "number": '("-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?)',
    "null": '"null"',
}


@dataclass(frozen=True, slots=True)
class Spacing:
    """Separators between the parts of objects and lists.

    Attributes:
        comma: between members and items.
        colon: between a member's name and its value.
    """

    comma: str
    colon: str

    def grammar(self, schema: Mapping[str, Any]) -> str:
        """Write the grammar of the schema's values as JSON with these separators.

        Args:
            schema: objects (all properties, in their order; or any, of one kind), lists, strings, numbers, booleans,
                enums, any of several types or schemas, any value; ``maxItems``, ``minItems``, ``maxLength``.

        Raises:
            ValueError: the schema uses something else.
        """
        writer = _Writer(self)
        root = writer.expression(schema)
        return "\n".join(f"{name} ::= {rule}" for name, rule in {"root": root, **writer.rules}.items())


class _Writer:
    """Writes the expressions of one grammar, and the rules that they name.

    What is repeated is a rule of its own: llama.cpp refuses a grammar that repeats a long expression up to hundreds of
    times.
    """

    def __init__(self, spacing: Spacing) -> None:
        self._spacing = spacing
        self.rules: dict[str, str] = {}

    def expression(self, node: Mapping[str, Any]) -> str:
        if "enum" in node:
            return "(" + " | ".join(_literal(json.dumps(value, ensure_ascii=False)) for value in node["enum"]) + ")"
        if choices := node.get("anyOf"):
            return "(" + " | ".join(self.expression(each) for each in choices) + ")"
        if not node:
            return self._value()
        kind = node.get("type")
        if isinstance(kind, list):
            return "(" + " | ".join(self.expression({**node, "type": each}) for each in kind) + ")"
        if kind == "object" and (node.get("properties") or node.get("additionalProperties") is False):
            return self._object(node.get("properties", {}))
        if kind == "object":
            more = node.get("additionalProperties", True)
            return self._mapping(self.expression({} if more is True else more))
        if kind == "array":
            return self._array(node)
        if kind == "string":
            return self._text(_times(0, node.get("maxLength")))
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        raise ValueError(f"no grammar for the schema part {json.dumps(node)}")

    def _object(self, properties: Mapping[str, Mapping[str, Any]]) -> str:
        parts = []
        for index, (name, part) in enumerate(properties.items()):
            key = (self._spacing.comma if index else "") + json.dumps(name, ensure_ascii=False) + self._spacing.colon
            parts.append(f"{_literal(key)} {self.expression(part)}")
        return f'"{{" {" ".join(parts)} "}}"'

    def _mapping(self, value: str) -> str:
        """Write an object with properties of any names."""
        member = self._named("member", f'{self._text("*")} "{self._spacing.colon}" {value}')
        following = self._named("next", f'"{self._spacing.comma}" {member}')
        return f'("{{}}" | "{{" {member} {following}* "}}")'

    def _value(self) -> str:
        """Name the rule of any value."""
        if "value" not in self.rules:
            self.rules["value"] = ""  # lists and objects of it name it
            kinds = [{"type": each} for each in ("object", *_PRIMITIVES, "string")]
            self.rules["value"] = self.expression({"anyOf": [*kinds, {"type": "array", "items": {}}]})
        return "value"

    def _text(self, times: str) -> str:
        self.rules["char"] = _STRING_CHARACTER
        return f'"\\"" char{times} "\\""'

    def _array(self, node: Mapping[str, Any]) -> str:
        least, most = node.get("minItems", 0), node.get("maxItems")
        if most == 0:
            return '"[]"'
        item = self._named("item", self.expression(node.get("items", {"type": "string"})))
        following = self._named("next", f'"{self._spacing.comma}" {item}')
        some = f'"[" {item} {following}{_times(max(least - 1, 0), None if most is None else most - 1)} "]"'
        return some if least else f'("[]" | {some})'

    def _named(self, stem: str, rule: str) -> str:
        """Return the name of the rule; equal rules are one."""
        for name, written in self.rules.items():
            if written == rule:
                return name
        name = f"{stem}{len(self.rules)}"
        self.rules[name] = rule
        return name


#: ``{"a":1,"b":[2,3]}``
COMPACT = Spacing(comma=",", colon=":")
#: ``{"a": 1, "b": [2, 3]}``: what Python's ``json.dumps`` writes, and what models have seen most of.
SPACED = Spacing(comma=", ", colon=": ")
#: By the value of ``backbone.structured``.
SPACINGS: Mapping[str, Spacing] = {"json_compact": COMPACT, "json_spaced": SPACED}


def no_spacing(structured: str) -> str:
    """Return the error of an engine whose grammar cannot set JSON separators."""
    return f"backbone.structured={structured} is for llama.cpp and vLLM; use json_schema with other engines"


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"{{{least},}}" if least else "*"
    return f"{{{least},{most}}}"


def _literal(text: str) -> str:
    """Quote a text as a terminal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
