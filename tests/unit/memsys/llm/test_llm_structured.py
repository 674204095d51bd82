"""The ladder from text to object, and what must not climb it."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.llm.reading import fenced_block
from memsys.llm.structured import _validator, parse_object
from memsys.llm.thoughts import strip_thinking

SCHEMA = {
    "type": "object",
    "properties": {"choice": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["choice"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "value", "repaired"),
    [
        ('{"choice": "a"}', {"choice": "a"}, False),
        ('  {"choice": "a", "n": 2}\n', {"choice": "a", "n": 2}, False),
        ('{"choice": ""}', {"choice": ""}, False),  # an empty string is the system's business
        ('Sure! {"choice": "a"} Hope it helps.', {"choice": "a"}, True),
        ('```json\n{"choice": "a"}\n```', {"choice": "a"}, True),
        ('{"choice": "a", "n": 2', {"choice": "a", "n": 2}, True),  # cut off
        ('{"choice": "a lon', {"choice": "a lon"}, True),
        ("{'choice': 'a',}", {"choice": "a"}, True),
        ('{"choice": "half \\ud83d pair"}', {"choice": "half \ufffd pair"}, False),
        ('{"choice": "\\ud83d\\ude00"}', {"choice": "\U0001f600"}, False),
    ],
)
def test_valid_objects(text: str, value: dict[str, object], repaired: bool) -> None:
    parsed = parse_object(text, SCHEMA, repair=True)
    assert (parsed.value, parsed.repaired) == (value, repaired)
    assert parsed.value is not None
    json.dumps(parsed.value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot answer that.",
        "[1, 2]",
        "null",
        '"choice"',
        '{"chosen": "a"}',
        '{"choice": 3}',
        '{"choice": "a", "extra": 1}',
        '{"choice": "a", "n": NaN}',
        '{"n": 3',
        "[" * 100_000,
        "{" * 3_000,
    ],
)
def test_malformed_texts(text: str) -> None:
    parsed = parse_object(text, SCHEMA, repair=True)
    assert parsed.value is None and parsed.problem and not parsed.repaired


def test_repair_is_a_setting_cutting_is_not() -> None:
    assert parse_object('{"choice": "a"', SCHEMA, repair=False).value is None
    assert parse_object('x {"choice": "a"} y', SCHEMA, repair=False).value == {"choice": "a"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>\nhm {\n</think>\n\nyes", "yes"),
        ("<think></think>yes", "yes"),
        ("hm, the template opened it</think> yes", "yes"),
        ("<think>never closed", ""),
        ("a <think>b</think> c <think>d</think> e", "a  c  e"),
        ("  plain  ", "plain"),
        ("", ""),
    ],
)
def test_thinking_is_dropped(text: str, left: str) -> None:
    assert strip_thinking(text) == left


@given(st.dictionaries(st.sampled_from(["choice"]), st.text(), min_size=1), st.integers())
def test_any_valid_object_comes_back_unrepaired(value: dict[str, str], number: int) -> None:
    whole = {**value, "n": number}
    parsed = parse_object(json.dumps(whole), SCHEMA, repair=True)
    assert parsed.value == json.loads(json.dumps(whole).encode()) and not parsed.repaired


@given(st.text(max_size=80))
def test_no_text_breaks_the_ladder(text: str) -> None:
    for candidate in (text, '{"choice": ' + text):
        parsed = parse_object(strip_thinking(candidate), SCHEMA, repair=True)
        assert parsed.value is None or set(parsed.value) <= {"choice", "n"}


#: As the released codes of Mem0 and LightMem find a code block.
BLOCK = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
PIECES = ("`", "```", "json", " ", "\n", "\x1c", "\u2003", "\u200b", "a", "{")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_code_block_is_what_the_released_codes_take_for_one(text: str) -> None:
    found = BLOCK.search(text)
    assert fenced_block(text) == (found[1] if found else None)


def test_a_code_block_that_is_not_closed_is_no_cubic_search() -> None:
    """Two thousand line breaks took seconds, in the event loop."""
    begun = time.process_time()
    assert fenced_block("```json" + "\n" * 40_000 + '{"facts": ["cut') is None
    assert time.process_time() - begun < 1


def test_both_validators_agree() -> None:
    """The fast one says whether, the other one says why."""
    for value in ({"choice": "a"}, {"choice": 1}, {}, {"choice": "a", "more": 1}, {"choice": True}, {"choice": None}):
        checks = _validator(SCHEMA)
        assert checks.accepts(value) == (not list(checks.explains(value)))
    assert _validator(SCHEMA) is _validator(SCHEMA)
