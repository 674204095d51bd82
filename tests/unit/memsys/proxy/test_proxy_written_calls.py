"""Calls of tools that a model writes as JSON, where its server reads none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.proxy.server import ToolCalls
from memsys.proxy.written_calls import written_calls
from tests.support.stub_server import StubServer
from tests.unit.memsys.proxy.test_proxy import TOOL, opened

NAMES = {"store", "drop"}


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name": "store", "arguments": {"fact": "tea"}}', [("store", '{"fact": "tea"}')]),
        ('```json\n{"name": "store", "parameters": {}}\n```', [("store", "{}")]),
        ('<tool_call>{"name": "drop", "arguments": {"id": 1}}</tool_call>', [("drop", '{"id": 1}')]),
        (
            'I do two things: [{"name": "store", "arguments": {}}, {"name": "drop", "arguments": {}}].',
            [("store", "{}"), ("drop", "{}")],
        ),
        ('{"name": "store", "arguments": {"fact": "tee für {zwei}"}}', [("store", '{"fact": "tee für {zwei}"}')]),
        ('{"name": "forget", "arguments": {}}', []),  # no tool that was offered
        ('{"name": ["store"], "arguments": {}}', []),
        ('{"name": "store", "arguments": "tea"}', []),
        ('{"name": "store"}', []),
        ('{"name": "store", "arguments": {"fact": "te', []),  # cut at its limit
        ("store(tea)", []),
        ("", []),
    ],
)
def test_objects_that_call_an_offered_tool_are_calls(text: str, calls: list[tuple[str, str]]) -> None:
    assert [(call["name"], call["arguments"]) for call in written_calls(text, NAMES)] == calls


@given(st.text(alphabet='{}[]":,namestorguf 1\\', max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert all(call["name"] in NAMES for call in written_calls(text, NAMES))


def test_a_text_of_braces_alone_is_read() -> None:
    assert list(written_calls('{"a":' * 5_000, NAMES)) == []


@pytest.mark.parametrize(("choice", "read"), [("written", True), ("served", False)])
def test_the_proxy_gives_written_calls_where_the_setting_says_so(
    stub: StubServer, tmp_path: Path, choice: ToolCalls, read: bool
) -> None:
    written = '<think>{"name": "store", "arguments": {}}</think>{"name": "store", "arguments": {"fact": "tea"}}'
    stub.state.replies = lambda request: written

    async def run() -> tuple[Any, Any]:
        async with opened(stub, tmp_path, tool_calls=choice) as world:
            return (await world.say(tools=[TOOL])), (await world.say())

    with_tools, without = asyncio.run(run())
    message = with_tools.choices[0].message
    assert [(c.function.name, c.function.arguments) for c in message.tool_calls or ()] == (
        [("store", '{"fact": "tea"}')] if read else []
    )
    assert with_tools.choices[0].finish_reason == ("tool_calls" if read else "stop")
    assert without.choices[0].message.tool_calls is None


@pytest.mark.parametrize(
    ("tool_choice", "called"),
    [
        ("auto", ["store", "drop"]),
        ("none", []),
        ({"type": "function", "function": {"name": "drop"}}, ["drop"]),
        ({"type": "function", "function": None}, []),
    ],
)
def test_only_what_the_program_lets_be_called_is_a_call(
    stub: StubServer, tmp_path: Path, tool_choice: Any, called: list[str]
) -> None:
    stub.state.replies = lambda request: '{"name": "store", "arguments": {}} {"name": "drop", "arguments": {}}'
    drop = {**TOOL, "function": {**TOOL["function"], "name": "drop"}}

    async def run() -> Any:
        async with opened(stub, tmp_path, tool_calls="written") as world:
            return await world.say(tools=[TOOL, drop], tool_choice=tool_choice)

    message = asyncio.run(run()).choices[0].message
    assert [call.function.name for call in message.tool_calls or ()] == called
