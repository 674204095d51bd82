"""Grammars with and without blanks: hand-written expectations, and what the real roles need."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from eval.running.composed import compose_plan
from eval.running.reader import ANSWER_SCHEMA
from memsys.clag.roles import SCHEMAS as CLAG_SCHEMAS
from memsys.errors import ConfigError
from memsys.llm.gbnf import COMPACT, SPACED
from memsys.llm.wire import make_request
from memsys.notes.roles import SCHEMAS as NOTE_SCHEMAS
from tests.support.backbones import backbone_config, role

compact_grammar, spaced_grammar = COMPACT.grammar, SPACED.grammar


def test_object_of_bounded_parts() -> None:
    schema = {
        "type": "object",
        "properties": {
            "yes": {"type": "boolean"},
            "ids": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
            "pick": {"type": "string", "enum": ["a", 'b"c']},
        },
    }
    assert compact_grammar(schema) == (
        'root ::= "{" "\\"yes\\":" ("true" | "false") '
        '",\\"ids\\":" ("[]" | "[" item0 next1{0,1} "]") '
        '",\\"pick\\":" ("\\"a\\"" | "\\"b\\\\\\"c\\"") "}"\n'
        'item0 ::= ("-"? ("0" | [1-9] [0-9]{0,8}))\n'
        'next1 ::= "," item0'
    )


def test_lists_that_must_not_be_empty() -> None:
    grammar = compact_grammar({"type": "array", "items": {"type": "null"}, "minItems": 2})
    assert grammar == 'root ::= "[" item0 next1{1,} "]"\nitem0 ::= "null"\nnext1 ::= "," item0'


def test_string_length_is_bounded() -> None:
    assert compact_grammar({"type": "string", "maxLength": 7}).startswith('root ::= "\\"" char{0,7} "\\""\nchar ::= ')
    assert compact_grammar({"type": "string"}).startswith('root ::= "\\"" char* "\\""\nchar ::= ')


def test_one_of_several_types() -> None:
    """The authors' prompt of Nemori's merges asks for an id or null: a run stopped at its first merge."""
    grammar = compact_grammar({"type": ["string", "null"], "maxLength": 7})
    assert grammar.startswith('root ::= ("\\"" char{0,7} "\\"" | "null")\nchar ::= ')


def test_equal_lists_share_their_rules() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    grammar = compact_grammar({"type": "object", "properties": {"a": texts, "b": texts}})
    assert [line.partition(" ")[0] for line in grammar.splitlines()] == ["root", "char", "item1", "next2"]


def test_one_of_several_schemas_and_objects_of_unnamed_properties() -> None:
    """The tools of MCP servers have both."""
    assert compact_grammar({"anyOf": [{"type": "null"}, {"enum": ["a"]}]}) == 'root ::= ("null" | ("\\"a\\""))'
    grammar = compact_grammar({"type": "object", "additionalProperties": {"type": "null"}})
    assert grammar.startswith('root ::= ("{}" | "{" member1 next2* "}")\nchar ::= ')
    assert grammar.endswith('\nmember1 ::= "\\"" char* "\\"" ":" "null"\nnext2 ::= "," member1')


def test_any_value_is_a_rule_that_names_itself() -> None:
    rules = dict(line.split(" ::= ") for line in compact_grammar({"type": "array", "items": {}}).splitlines())
    assert rules["root"] == '("[]" | "[" item4 next5* "]")' and rules["item4"] == "value"
    assert rules["value"].startswith('(("{}" | "{" member2 next3* "}") | ("true" | "false") | ')
    assert rules["member2"].endswith(' ":" value')


@pytest.mark.parametrize("schema", [{"anyOf": []}, {"type": ["string", "any"]}, {"allOf": [{"type": "string"}]}])
def test_unknown_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no grammar"):
        compact_grammar(schema)
    config = backbone_config(structured="json_compact")
    with pytest.raises(ConfigError, match=r"role analyse: .* no grammar for the schema part .*=json_schema"):
        make_request(config, "llamacpp", role(schema=schema), "hello", 1)


def test_a_blank_after_colons_and_commas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "yes": {"type": "boolean"},
            "ids": {"type": "array", "items": {"type": "null"}, "minItems": 2},
        },
    }
    assert spaced_grammar(schema) == (
        'root ::= "{" "\\"yes\\": " ("true" | "false") ", \\"ids\\": " "[" item0 next1{1,} "]" "}"\n'
        'item0 ::= "null"\n'
        'next1 ::= ", " item0'
    )


@pytest.mark.parametrize(("way", "grammar"), [("json_compact", compact_grammar), ("json_spaced", spaced_grammar)])
def test_request_carries_the_grammar_as_the_engine_takes_it(
    way: str, grammar: Callable[[Mapping[str, Any]], str]
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    config = backbone_config(structured=way)
    body = make_request(config, "llamacpp", role(schema=schema), "hello", 1).body
    assert body["grammar"] == grammar(schema) and "response_format" not in body
    sent: Any = make_request(config, "vllm", role(schema=schema), "hello", 1).body["response_format"]
    blank = " " if way == "json_spaced" else ""
    separators = {"item_separator": f",{blank}", "key_separator": f":{blank}"}
    assert sent["json_schema"]["schema"] == {**schema, "x-guidance": {"whitespace_flexible": False, **separators}}
    with pytest.raises(ConfigError, match=f"{way} is for llama.cpp and vLLM"):
        make_request(config, "openai", role(schema=schema), "hello", 1)


def test_vllm_is_told_by_which_backend_it_reads_the_blanks() -> None:
    guided = ["--structured-outputs-config", '{"backend": "guidance"}']
    told = compose_plan(["backbone=qwen3_06b", "backbone.structured=json_schema"]).backbone
    assert told is not None
    with pytest.raises(ConfigError, match="backend guidance"):
        replace(told, structured="json_spaced")
    engine: Any = told.engine
    assert replace(told, structured="json_spaced", engine=replace(engine, extra_args=guided)).structured


def test_every_role_of_every_preset_has_a_compact_grammar() -> None:
    for schemas in (NOTE_SCHEMAS, CLAG_SCHEMAS):
        for schema in schemas.values():
            assert compact_grammar(schema).startswith("root ::= ")
            assert spaced_grammar(schema).startswith("root ::= ")
    assert compact_grammar(ANSWER_SCHEMA)
    assert spaced_grammar(ANSWER_SCHEMA)
