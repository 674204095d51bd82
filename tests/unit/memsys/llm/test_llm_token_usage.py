"""Tokens that a server does not report are counted here and marked; what it says against reason is not believed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.errors import BackboneError
from memsys.llm.cache import ReplyCache
from memsys.llm.ledger import CallRecord
from memsys.llm.token_usage import is_shortened, read_usage
from memsys.vocabulary import Completion
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, stub

BODY = {"choices": [{"message": {"content": "Pixel the cat", "reasoning": "Rex or"}, "finish_reason": "stop"}]}


def ask(
    server: StubServer, folder: Path, text: str = "hello", cache: ReplyCache | None = None, **changes: Any
) -> CallRecord:
    """Ask a role for free text; returns the row of the ledger."""
    records: list[CallRecord] = []

    async def run() -> None:
        enter()
        engine, config = StubEngine([server.url]), backbone_config(**{"token_counter": "characters", **changes})
        async with open_backbone(engine, folder, config=config, cache=cache, on_call=records.append) as backbone:
            await backbone.bind("c1").ask(role(schema=None), {"text": text}, key="t1")

    asyncio.run(run())
    return records[0]


@pytest.mark.parametrize(
    "usage",
    [
        "absent", None, {}, [], "none", {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": "9"},
        {"prompt_tokens": -5, "completion_tokens": -7}, {"prompt_tokens": "9", "completion_tokens": "4"},
        {"prompt_tokens": float("inf"), "completion_tokens": float("nan")},
        {"prompt_tokens": True, "completion_tokens": 1e300}, {"prompt_tokens": 1.5, "prompt_tokens_details": "none"},
    ],
)  # fmt: skip
def test_tokens_that_a_server_does_not_report_are_counted_and_marked(tmp_path: Path, usage: Any) -> None:
    body = BODY if usage == "absent" else BODY | {"usage": usage}
    with stub() as server:
        server.state.bodies = lambda _: (200, body)
        first, second = (ask(server, tmp_path, cache=ReplyCache(tmp_path / "cache")) for _ in range(2))
        assert server.state.count == 1
    # a token for four characters of "Describe: hello", and of the thoughts and the text of the reply
    assert (first.prompt_tokens, first.completion_tokens, first.estimated) == (4, 5, True)
    assert (second.prompt_tokens, second.completion_tokens, second.estimated, second.cache_hit) == (4, 5, True, True)


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"prompt_tokens": 9}, (9, 5)), ({"prompt_tokens": 0, "completion_tokens": 3}, (4, 3))]
)
def test_what_a_partial_usage_says_is_kept(tmp_path: Path, usage: Any, tokens: tuple[int, int]) -> None:
    with stub() as server:
        server.state.bodies = lambda _: (200, BODY | {"usage": usage})
        record = ask(server, tmp_path)
    assert (record.prompt_tokens, record.completion_tokens) == tokens and record.estimated


@pytest.mark.parametrize(
    ("usage", "prompt", "reply", "cached", "estimated"),
    [
        ({"prompt_tokens": 10**12, "completion_tokens": 3}, 4, 3, None, True),
        ({"prompt_tokens": 9, "completion_tokens": 10**9}, 9, 5, None, True),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 10**6}},
         9, 3, None, False),
        ({"input_tokens": 9, "output_tokens": 3, "cache_creation_input_tokens": 10**6}, 9, 3, None, False),
        # a gateway that hands on Anthropic's count
        ({"prompt_tokens": 9, "completion_tokens": 3, "cache_read_input_tokens": 2000}, 2009, 3, 2000, False),
    ],
)  # fmt: skip
def test_numbers_of_tokens_that_cannot_be_are_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture,
    usage: Any, prompt: int, reply: int, cached: int | None, estimated: bool,
) -> None:  # fmt: skip
    """They spent a budget at once."""
    with stub() as server:
        server.state.bodies = lambda _: (200, BODY | {"usage": usage})
        record = ask(server, tmp_path)
    counted = record.prompt_tokens, record.completion_tokens, record.cached_tokens, record.estimated
    assert counted == (prompt, reply, cached, estimated)
    assert ("implausible counts" in caplog.text) == (cached is None)


def test_a_prompt_that_the_server_shortened_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with stub() as server:
        server.state.bodies = lambda _: (200, BODY | {"usage": {"prompt_tokens": 20, "completion_tokens": 1}})
        assert ask(server, tmp_path, text="word " * 100).shortened
        assert "read 20 tokens of a prompt of 101 words" in caplog.text and "backbone.context_length" in caplog.text
        assert not ask(server, tmp_path, text="word " * 19).shortened


@pytest.mark.parametrize(
    "reply",
    [{"count": float("inf")}, {"count": float("nan")}, {"count": -1}, {"count": "5"}, {"count": 10**9}, {"count": None},
     {"tokens": 5}, {"tokens": None}, {}, []],
)  # fmt: skip
def test_a_tokenizer_that_says_what_cannot_be_is_one_clear_error(tmp_path: Path, reply: Any) -> None:
    async def run(server: StubServer) -> None:
        config = backbone_config(transport_retries=0)
        async with open_backbone(StubEngine([server.url]), tmp_path, config=config) as backbone:
            await backbone.bind("c1").count_tokens("hello")

    with stub() as server:
        server.state.tokenizer = lambda _: reply
        with pytest.raises(BackboneError, match=r"/tokenize says .* set backbone\.token_counter"):
            asyncio.run(run(server))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("All human beings are born free.", 8),  # 31 characters
        ("Alle Menschen sind frei an Würde.", 9),
        ("昨天我和妹妹去公园。", 10),
        ("人間は自由である。", 9),
        ("모든 인간은", 6),  # five syllables and a space
        ("มนุษย์", 5),  # four letters and two marks
        ("Все люди равны", 7),  # twelve letters and two spaces
        ("Pixel 🐱!", 3),
        ("", 0),
    ],
)
def test_tokens_are_estimated_by_script(tmp_path: Path, text: str, tokens: int) -> None:
    """Four characters were a token in any script: Chinese had a quarter of its tokens, and overran its window."""

    async def count() -> int:
        config = backbone_config(token_counter="characters_by_script")
        async with open_backbone(StubEngine([]), tmp_path, config=config) as backbone:
            return await backbone.bind("c1").count_tokens(text)

    assert asyncio.run(count()) == tokens


def test_a_quarter_of_the_characters_of_chinese_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def count(*texts: str) -> None:
        config = backbone_config(token_counter="characters")
        async with open_backbone(StubEngine([]), tmp_path, config=config) as backbone:
            for text in texts:
                await backbone.bind("c1").count_tokens(text)

    asyncio.run(count("Hello, my dear 妹妹, how are you today?"))
    assert "token_counter" not in caplog.text
    asyncio.run(count("昨天我和妹妹去公园散步。", "人人生而自由。"))
    assert caplog.text.count("set backbone.token_counter=characters_by_script") == 1


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 90, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 64}}, (90, 4, 64)),
        ({"prompt_tokens": 90, "completion_tokens": 4, "prompt_tokens_details": None}, (90, 4, None)),
        ({"prompt_tokens": 90, "completion_tokens": 4, "prompt_cache_hit_tokens": 64}, (90, 4, 64)),  # DeepSeek
        ({"prompt_tokens": 90, "completion_tokens": 4, "cached_tokens": 64}, (90, 4, 64)),  # Moonshot
        ({"prompt_tokens": 90, "completion_tokens": 4, "cache_read_input_tokens": 64}, (90, 4, 64)),
        ({"prompt_tokens": 26, "completion_tokens": 4, "cache_read_input_tokens": 64}, (90, 4, 64)),
        (
            {"input_tokens": 6, "output_tokens": 4, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 20},
            (90, 4, 64),
        ),  # Anthropic, which counts them apart
        ({"input_tokens": 90, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 64}}, (90, 4, 64)),
    ],
)
def test_tokens_from_a_cache_are_read_under_every_providers_name(usage: Any, read: tuple[int, int, int | None]) -> None:
    assert read_usage(usage, says_something=True) == (*read, False)


@given(st.lists(st.sampled_from(["a", "bc", " ", "\n", "\t", "\x1c", "\xa0", "é"])).map("".join), st.integers(1, 30))
def test_a_prompt_has_as_many_tokens_as_words(prompt: str, read: int) -> None:
    completion = Completion("", read, 1, 0.0, "stop")
    assert is_shortened(completion, prompt) == (read < 0.9 * len(prompt.split()))
