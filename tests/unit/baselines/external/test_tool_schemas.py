"""Schemas of the calls that an agent may make: expectations by hand, and every call of them validates."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from baselines.external.tool_schemas import calls_schema, readable_calls, without_nulls
from memsys.llm.gbnf import COMPACT, SPACED

#: As `@modelcontextprotocol/server-memory` (zod) and `basic-memory` (pydantic) write them.
CREATE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {"$ref": "#/$defs/Entity"},
        }
    },
    "required": ["entities"],
    "$defs": {
        "Entity": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "who", "pattern": "^[a-z]+$"},
                "observations": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                "within": {"allOf": [{"$ref": "#/$defs/Entity"}]},
            },
            "required": ["name", "observations"],
            "additionalProperties": False,
        }
    },
}
SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "page": {"default": 1, "type": "integer", "minimum": 1},
        "kinds": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        "mode": {"const": "text"},
        "metadata": {"type": "object", "additionalProperties": True},
        "since": {"type": ["string", "number"]},
        "anything": {},
    },
    "required": ["query", "mode"],
}
TOOLS: dict[str, dict[str, Any]] = {"create": CREATE, "search": SEARCH, "read": {"type": "object", "properties": {}}}
_NULL = {"type": "null"}


def arguments_of(tool: str) -> Any:
    schema: Any = calls_schema(TOOLS, "done")
    choices = schema["properties"]["call"]["anyOf"]
    return {each["properties"]["tool"]["enum"][0]: each["properties"]["arguments"] for each in choices}[tool]


def test_each_tool_has_its_own_arguments() -> None:
    assert arguments_of("search")["properties"] == {
        "query": {"type": "string"},
        "page": {"anyOf": [{"type": "integer"}, _NULL]},
        "kinds": {"anyOf": [{"type": "array", "items": {"type": "string"}}, _NULL]},
        "mode": {"enum": ["text"]},
        "metadata": {"anyOf": [{"type": "object"}, _NULL]},
        "since": {"anyOf": [{"type": "string"}, {"type": "number"}, _NULL]},
        "anything": {},
    }
    nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert arguments_of("read") == arguments_of("done") == nothing
    entity = arguments_of("create")["properties"]["entities"]["items"]
    assert entity["properties"]["name"] == {"type": "string"}
    assert entity["properties"]["observations"] == {"type": "array", "items": {"type": "string"}, "maxItems": 5}
    assert set(entity["required"]) == {"name", "observations", "within"}


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert "$ref" not in json.dumps(calls_schema(TOOLS, "done"))
    assert len(json.dumps(calls_schema(TOOLS, "done"))) < 10_000


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ({"tool": "done", "arguments": {}}, True),
        ({"tool": "read", "arguments": {"query": "x"}}, False),
        ({"tool": "create", "arguments": {"entities": [{"name": "Ann", "observations": [], "within": None}]}}, True),
        ({"tool": "create", "arguments": {"entities": ["Ann"]}}, False),
        ({"tool": "create", "arguments": {"query": "Ann"}}, False),
        ({"tool": "delete", "arguments": {}}, False),
    ],
)
def test_a_tool_is_called_with_its_own_arguments_alone(call: dict[str, Any], allowed: bool) -> None:
    assert Draft202012Validator(calls_schema(TOOLS, "done")).is_valid({"call": call}) == allowed


def test_a_server_without_constraints_may_reply_what_the_tool_refuses() -> None:
    readable = Draft202012Validator(readable_calls(list(TOOLS), "done"))
    assert readable.is_valid({"call": {"tool": "search", "arguments": {"words": "x"}}})
    assert not readable.is_valid({"call": {"tool": "delete", "arguments": {}}})
    assert not readable.is_valid({"call": {"tool": "search", "arguments": "x"}})


def test_what_is_not_given_is_not_sent() -> None:
    given = {"query": None, "page": None, "kinds": ["a", None], "metadata": {"x": None}, "unknown": None}
    assert without_nulls(given, SEARCH) == {
        "query": None,
        "kinds": ["a", None],
        "metadata": {"x": None},
        "unknown": None,
    }
    nested = {"entities": [{"name": None, "observations": [], "within": None}]}
    assert without_nulls(nested, CREATE) == {"entities": [{"name": None, "observations": []}]}


@pytest.mark.parametrize("spacing", [COMPACT, SPACED])
def test_every_tool_has_a_grammar(spacing: Any) -> None:
    rules = dict(line.split(" ::= ", 1) for line in spacing.grammar(calls_schema(TOOLS, "done")).splitlines())
    named = re.findall(r"\b(?:value|char|[a-z]+\d+)\b", re.sub(r'"(?:\\.|[^"\\])*"', "", " ".join(rules.values())))
    assert set(named) <= set(rules)
