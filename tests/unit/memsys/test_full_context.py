"""The full-context baseline: exact budget, cut from the start, at turns."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.errors import ConfigError
from memsys.protocol import MemorySystem
from memsys.vocabulary import Conversation, Retrieval, Turn
from tests.support.composing import conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel

# FakeModel counts words: every turn "Ann: w w" is 3 tokens, a header "DATE: n May 2023 CONVERSATION:" 5,
# the opening counts as below.
TALK = conversation(["one two", "three four"], ["five six", "seven eight"])
OPENING_TOKENS = 24
EVERYTHING = OPENING_TOKENS + 2 * 5 + 4 * 3


def filled(window: int | None = None, talk: Conversation = TALK, **changes: Any) -> tuple[MemorySystem, Retrieval]:
    config = memory_config("full_context", window=window, answer_reserve=0, prompt_reserve=0, **changes)
    memory = config.build(parts(FakeModel(lambda role, values, key: "")))
    ingest(memory, talk)
    return memory, asyncio.run(memory.retrieve("Anything?"))


def test_a_wide_window_holds_everything_in_order() -> None:
    memory, retrieval = filled()
    blocks = retrieval.context.split("\n\n")
    assert blocks[1:] == [
        "DATE: 1 May 2023\nCONVERSATION:\nAnn: one two\nBen: three four",
        "DATE: 2 May 2023\nCONVERSATION:\nAnn: five six\nBen: seven eight\n",
    ]
    assert "between Ann and Ben" in blocks[0]
    assert [hit.turn_ids for hit in retrieval.hits] == [("D1:0", "D1:1", "D2:0", "D2:1")]
    assert not retrieval.ranked
    assert retrieval.trace["truncated"] is False and retrieval.trace["tokens"] == EVERYTHING
    assert memory.statistics() == retrieval.trace


@pytest.mark.parametrize(
    ("window", "kept", "first"),
    [
        (EVERYTHING, 4, "D1:0"),
        (EVERYTHING - 1, 3, "D1:1"),
        (OPENING_TOKENS + 2 * 5 + 3 * 3, 3, "D1:1"),
        (OPENING_TOKENS + 2 * 5 + 3 * 3 - 1, 2, "D2:0"),  # the header of the first session would not fit
        (OPENING_TOKENS + 5 + 3, 1, "D2:1"),
        (OPENING_TOKENS + 5 + 2, 0, None),
    ],
)
def test_the_start_is_cut_at_turns_and_headers_are_paid_for(window: int, kept: int, first: str | None) -> None:
    _, retrieval = filled(window)
    assert (retrieval.trace["kept_turns"], retrieval.trace["first_turn"]) == (kept, first)
    assert retrieval.trace["truncated"] is (kept < 4)
    assert len(retrieval.context.split()) == retrieval.trace["tokens"] <= window
    assert (retrieval.context == "") is (kept == 0)
    assert sum(len(hit.turn_ids) for hit in retrieval.hits) == kept


def test_a_partly_kept_session_keeps_its_date() -> None:
    _, retrieval = filled(EVERYTHING - 1)
    assert "DATE: 1 May 2023\nCONVERSATION:\nBen: three four" in retrieval.context


@given(st.integers(1, 60))
def test_the_context_never_exceeds_the_budget(window: int) -> None:
    _, retrieval = filled(window)
    assert len(retrieval.context.split()) <= window


def test_reserves_come_off_the_window() -> None:
    config = memory_config("full_context", window=EVERYTHING + 9, answer_reserve=4, prompt_reserve=5)
    memory = config.build(parts(FakeModel(lambda role, values, key: "")))
    ingest(memory, TALK)
    trace = asyncio.run(memory.retrieve("?")).trace
    assert trace["budget"] == EVERYTHING and trace["kept_turns"] == 4


def test_each_text_is_counted_once() -> None:
    counted: list[str] = []

    class Counting(FakeModel):
        async def count_tokens(self, text: str) -> int:
            counted.append(text)
            return await super().count_tokens(text)

    memory = memory_config("full_context").build(parts(Counting(lambda role, values, key: "")))
    ingest(memory, TALK)
    for _ in range(3):
        asyncio.run(memory.retrieve("?"))
    assert len(counted) == 4 * 2 + 1


def test_locomo_lines_quote_the_text_and_show_the_caption() -> None:
    turn = Turn("D1:1", "s", "Ann", "Look!", date_time="1 May", caption="a boat")
    _, retrieval = filled(turn_line="locomo", talk=Conversation("c", (turn,)))
    assert 'Ann said, "Look!" [shares a boat]' in retrieval.context


def test_material_that_is_no_dialogue_of_two_goes_without_opening() -> None:
    turn = Turn("0:1", "session_0", "System", "Title: X")
    _, retrieval = filled(talk=Conversation("c", (turn,)))
    assert retrieval.context == "CONVERSATION:\nSystem: Title: X\n"


def test_impossible_windows_are_refused() -> None:
    with pytest.raises(ConfigError, match="exceeds"):
        filled(10_000)
    config = memory_config("full_context", window=10, answer_reserve=5, prompt_reserve=5)
    with pytest.raises(ConfigError, match="no room"):
        ingest(config.build(parts(FakeModel(lambda role, values, key: ""))), TALK)
    with pytest.raises(ConfigError, match="window"):
        memory_config("full_context", window=0)
