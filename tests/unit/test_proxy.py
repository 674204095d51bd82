"""The proxy, asked by OpenAI's own client and by programs that misbehave, in front of a stub backbone."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.configs.presets import make_preset
from eval.configs.prices import EmbeddingPrice, Price
from eval.proxy.__main__ import SETTINGS
from eval.proxy.__main__ import main as proxy_command
from eval.proxy.ledger import EmbeddingLedger, summary
from eval.runs.embeddings import EmbeddingRecord
from memsys.embedding.hashing import HashingEmbedder
from memsys.llm.cache import ReplyCache
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig
from memsys.llm.ledger import CallRecord
from memsys.proxy.clients import ProxyClient, ProxyScope
from memsys.proxy.errors import RefusedRequestError
from memsys.proxy.requests import read_completion_request, read_embedding_request, read_object
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings
from tests.support.backbones import StubEngine, backbone_config, open_backbone
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "store", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


@dataclass
class Open:
    """An open proxy with a client of OpenAI's package."""

    proxy: ProxyServer
    client: ProxyClient
    calls: list[CallRecord] = field(default_factory=list)
    embedded: list[tuple[ProxyScope, int]] = field(default_factory=list)

    @property
    def ai(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.proxy.base_url, api_key=self.client.token)

    async def say(self, **more: Any) -> Any:
        """Ask; of a stream all events."""
        async with self.ai as ai:
            reply = await ai.chat.completions.create(model="any", **{"messages": HELLO, **more})
            return [event async for event in reply] if more.get("stream") else reply

    async def raw(self, data: bytes, *, patience: float = 5.0) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.proxy.base_url.split(":")[2][:-3]))
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(patience):
            reply = await reader.read(4096)
        writer.close()
        return reply


@asynccontextmanager
async def opened(stub: StubServer, folder: Path, *, cached: bool = False, **config: Any) -> AsyncIterator[Open]:
    calls: list[CallRecord] = []
    embedded: list[tuple[ProxyScope, int]] = []
    server = ProxySettings(port=0, default_max_tokens=64, max_body_mb=1, body_timeout_s=0.3)
    async with open_backbone(
        StubEngine([stub.url]),
        folder,
        config=backbone_config(**config),
        cache=ReplyCache(folder / "cache") if cached else None,
        on_call=calls.append,
    ) as backbone:
        parts = ProxyParts(
            "stub",
            backbone.bind,
            HashingEmbedder(8),
            lambda scope, texts, seconds: embedded.append((scope, len(texts))),
        )
        async with ProxyServer(parts, server) as proxy:
            yield Open(proxy, proxy.clients.admit("package", ProxyScope("conv-1")), calls, embedded)


def test_a_call_goes_through_ledger_and_cache_with_phase_and_unit(stub: StubServer, tmp_path: Path) -> None:
    async def run() -> tuple[list[CallRecord], list[str]]:
        async with opened(stub, tmp_path, cached=True) as world:
            world.client.begin(ProxyScope("conv-1", "write", "D1:3"))
            first = await world.say(temperature=0.7)
            header = {"x-memsys-phase": "retrieve", "x-memsys-item": "q7"}
            await world.say(extra_headers=header, messages=[{"role": "user", "content": "Another"}])
        async with opened(stub, tmp_path, cached=True) as again:  # as after a kill
            again.client.begin(ProxyScope("conv-1", "write", "D1:3"))
            second = await again.say(temperature=0.7)
        return world.calls + again.calls, [one.choices[0].message.content for one in (first, second)]

    calls, texts = asyncio.run(run())
    assert [(c.conversation_id, c.phase, c.item, c.role, c.cache_hit) for c in calls] == [
        ("conv-1", "write", "D1:3", "chat", False),
        ("conv-1", "retrieve", "q7", "chat", False),
        ("conv-1", "write", "D1:3", "chat", True),
    ]
    assert texts[0] == texts[1] != ""
    assert stub.state.count == 2
    assert calls[0].prompt_tokens == 1
    assert calls[0].completion_tokens == len(texts[0].split())


def test_repetitions_differ_as_samples_do_and_start_again_with_the_next_step(stub: StubServer, tmp_path: Path) -> None:
    async def run() -> list[int]:
        async with opened(stub, tmp_path) as world:
            for temperature in (1.0, 1.0, 0.0, 0.0):
                await world.say(temperature=temperature)
            world.client.begin(ProxyScope("conv-1", "write", "next"))
            await world.say(temperature=1.0)
            await world.say(n=2)
            return [call.attempt for call in world.calls]

    attempts = asyncio.run(run())
    seeds = [request["seed"] for request in stub.state.requests]
    assert attempts == [0, 1, 0, 1, 0, 0, 1]
    assert seeds[0] != seeds[1]
    assert seeds[2] == seeds[3]
    assert seeds[4] == seeds[0]
    assert seeds[5] != seeds[6]


def test_a_stream_says_what_the_plain_reply_says(stub: StubServer, tmp_path: Path) -> None:
    async def run() -> tuple[Any, list[Any]]:
        async with opened(stub, tmp_path, cached=True) as world:
            plain = await world.say(temperature=0)
            options: Any = {"stream": True, "stream_options": {"include_usage": True}}
            return plain, await world.say(temperature=0, **options)

    plain, events = asyncio.run(run())
    said = "".join(event.choices[0].delta.content or "" for event in events if event.choices)
    assert said == plain.choices[0].message.content
    assert [event.choices[0].finish_reason for event in events if event.choices] == [None, "stop"]
    assert events[-1].usage.total_tokens == plain.usage.total_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_pass_with_ids_that_are_the_same_in_every_run(
    stub: StubServer, tmp_path: Path, stream: bool
) -> None:
    called = {"id": "random", "type": "function", "function": {"name": "store", "arguments": '{"fact": "tea"}'}}
    stub.state.replies = lambda request: {"role": "assistant", "content": None, "tool_calls": [called]}

    async def run() -> list[tuple[str, str, str]]:
        found = []
        for _ in range(2):  # the second from the cache
            async with opened(stub, tmp_path, cached=True) as world:
                reply = await world.say(tools=[TOOL], tool_choice="required", stream=stream)
                if stream:
                    calls = [c for event in reply for c in event.choices[0].delta.tool_calls or ()]
                else:
                    assert reply.choices[0].finish_reason == "tool_calls"
                    calls = reply.choices[0].message.tool_calls
                found += [(call.id, call.function.name, call.function.arguments) for call in calls]
        return found

    first, second = asyncio.run(run())
    assert first == second
    assert first[0].startswith("call_")
    assert first[1:] == ("store", '{"fact": "tea"}')
    assert stub.state.count == 1
    assert stub.state.requests[0]["tools"] == [TOOL]
    assert stub.state.requests[0]["tool_choice"] == "required"


@pytest.mark.parametrize("form", ["float", "base64"])
def test_embeddings_are_the_embedders(stub: StubServer, tmp_path: Path, form: Any) -> None:
    async def run() -> tuple[Any, Open]:
        async with opened(stub, tmp_path) as world:
            async with world.ai as ai:
                reply = await ai.embeddings.create(model="any", input=["a cat", "a dog"], encoding_format=form)
                # without a form the client asks for base64 and reads it itself
                plain = await ai.embeddings.create(model="any", input=["a cat", "a dog"])
                with pytest.raises(openai.BadRequestError, match="has 8"):
                    await ai.embeddings.create(model="any", input="a cat", dimensions=1536)
            if form == "float":
                assert [row.embedding for row in plain.data] == [row.embedding for row in reply.data]
            return plain, world

    reply, world = asyncio.run(run())
    expected = asyncio.run(HashingEmbedder(8).embed(["a cat", "a dog"]))
    assert np.array_equal(np.array([row.embedding for row in reply.data], dtype=np.float32), expected)
    assert world.embedded == [(ProxyScope("conv-1"), 2)] * 2
    assert world.calls == []
    assert world.client.embedded == 4


def test_only_who_has_the_token_gets_in(stub: StubServer, tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            for key in ("sk-nonsense", world.client.token[:-1]):
                async with openai.AsyncOpenAI(base_url=world.proxy.base_url, api_key=key) as stranger:
                    with pytest.raises(openai.AuthenticationError, match="not one of this proxy"):
                        await stranger.chat.completions.create(model="any", messages=HELLO)  # type: ignore[arg-type]
            refused = await world.raw(b"GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \xff\r\n\r\n")
            assert refused.startswith(b"HTTP/1.1 401")
            async with openai.AsyncOpenAI(base_url=world.proxy.url(world.client), api_key="none") as by_address:
                models = await by_address.models.list()
                assert [model.id for model in models.data] == ["stub", "hashing"]
                world.proxy.clients.dismiss(world.client)
                with pytest.raises(openai.AuthenticationError):
                    await by_address.models.list()

    asyncio.run(run())
    assert stub.state.count == 0


@pytest.mark.parametrize(
    ("config", "asked", "sent"),
    [
        ({}, {}, {"max_tokens": 64, "temperature": 1.0}),
        ({}, {"max_completion_tokens": 9, "top_p": 0.1}, {"max_tokens": 9, "top_p": 0.1}),
        ({"max_tokens_field": "max_completion_tokens"}, {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ({"temperature": 0.2}, {"temperature": 0.9}, {"temperature": 0.2}),
        ({"send_temperature": False}, {"temperature": 0.9}, {"temperature": None}),
        ({"structured": "off"}, {"response_format": {"type": "json_object"}}, {"response_format": None}),
        (
            {"thinking": "off", "thinking_switch": {"chat_template_kwargs": {"enable_thinking": False}}},
            {"stop": ["END"]},
            {"chat_template_kwargs": {"enable_thinking": False}, "stop": ["END"]},
        ),
    ],
)
def test_what_the_program_asks_for_holds_and_the_backbone_fills_the_rest(
    stub: StubServer, tmp_path: Path, config: dict[str, Any], asked: dict[str, Any], sent: dict[str, Any]
) -> None:
    async def run() -> None:
        async with opened(stub, tmp_path, **config) as world:
            await world.say(**asked)

    asyncio.run(run())
    request = stub.state.requests[0]
    assert {name: request.get(name) for name in sent} == sent
    assert request["model"] == "stub"


def post(path: str, body: bytes, token: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"POST /{token}/v1{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/chat/completions", b"{", 400, "is not JSON"),
        ("/chat/completions", b"[]", 400, "must be a JSON object"),
        ("/chat/completions", b"{}", 400, "messages must be a list"),
        ("/chat/completions", b'{"messages": [{"role": "user", "content": 3}]}', 400, r"messages\[0\].content"),
        (
            "/chat/completions",
            b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            400,
            "no text",
        ),
        ("/chat/completions", b'{"messages": [{"role": "user", "content": ""}], "n": 0}', 400, "n=0"),
        ("/completions", b'{"prompt": "a", "stream_options": [1]}', 400, "stream_options=.* must be an object"),
        ("/completions", b'{"prompt": "a", "response_format": "json"}', 400, "response_format=.* must be an object"),
        ("/completions", b'{"prompt": "a", "temperature": NaN}', 400, "temperature=nan must be a finite number"),
        ("/completions", b'{"prompt": [1, 2]}', 400, "prompt must be one text"),
        ("/embeddings", b'{"input": [[1, 2]]}', 400, "token ids"),
        ("/images/generations", b"{}", 404, "not served"),
        ("/chat/completions", b"x" * 1_100_000, 413, "not served|large"),
    ],
)
def test_nonsense_is_one_message_in_the_log_and_an_error_that_clients_read(
    stub: StubServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    path: str,
    body: bytes,
    status: int,
    said: str,
) -> None:
    async def run() -> list[bytes]:
        async with opened(stub, tmp_path) as world:
            return [await world.raw(post(path, body, world.client.token)) for _ in range(2)]

    replies = asyncio.run(run())
    for reply in replies:
        head, _, text = reply.partition(b"\r\n\r\n")
        assert int(head.split(b" ")[1]) == status
        assert set(json.loads(text)["error"]) == {"message", "type", "param", "code"}
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert caplog.records[0].getMessage().startswith("package: ") or status == 404
    assert re.search(said, caplog.records[0].getMessage())
    assert stub.state.count == 0


def test_a_program_that_hangs_and_one_that_dies_are_said_once(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[bytes, Any]:
        async with opened(stub, tmp_path) as world:
            half = post("/chat/completions", b'{"mess', world.client.token, length=500)
            hung = await world.raw(half)
            port = int(world.proxy.base_url.split(":")[2][:-3])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(half)
            await writer.drain()
            writer.close()
            await asyncio.sleep(0.1)
            return hung, await world.say()

    hung, reply = asyncio.run(run())
    assert b" 408 " in hung.split(b"\r\n")[0]
    assert [record.getMessage() for record in caplog.records] == [
        "package: no whole request within 0.3 s",
        "package: it hung up before its request was whole",
    ]
    assert reply.choices[0].message.content


def test_a_failed_call_reaches_the_program_once_and_stays_known(stub: StubServer, tmp_path: Path) -> None:
    stub.state.every = "500"

    async def run() -> Open:
        async with opened(stub, tmp_path, transport_retries=1) as world:
            with pytest.raises(openai.InternalServerError, match="failed 2 times"):
                await world.say()
            return world

    world = asyncio.run(run())
    assert stub.state.count == 2  # ours alone: OpenAI's client is told not to try again
    assert "failed 2 times" in str(world.client.failure)
    assert world.calls == []


def test_a_prompt_over_the_context_is_openais_error(stub: StubServer, tmp_path: Path) -> None:
    stub.fail("context")

    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            with pytest.raises(openai.BadRequestError, match="do not fit") as caught:
                await world.say()
            assert caught.value.code == "context_length_exceeded"

    asyncio.run(run())


def test_many_calls_at_once_share_the_backbones_slots(tmp_path: Path) -> None:
    with StubServer(delay=0.02) as stub:

        async def run() -> list[CallRecord]:
            async with opened(stub, tmp_path, max_in_flight=16) as world, world.ai as ai:
                messages: Any = [[{"role": "user", "content": f"message {number}"}] for number in range(120)]
                await asyncio.gather(*(ai.chat.completions.create(model="any", messages=one) for one in messages))
                return world.calls

        calls = asyncio.run(run())
    assert len({call.key for call in calls}) == 120
    assert stub.state.most_in_flight == 16


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("messages", "prompt", "input", "n", "max_tokens", "temperature", "stream_options", "tools", "dimensions", "x")


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(["/chat/completions", "/completions"]))
def test_any_body_is_read_or_refused(body: dict[str, Any], path: str) -> None:
    for read in (lambda: read_completion_request(path, body, 10), lambda: read_embedding_request(body)):
        try:
            read()
        except RefusedRequestError as error:
            assert str(error)


def test_a_nested_body_is_refused() -> None:
    with pytest.raises(RefusedRequestError, match="not JSON"):
        read_object(b"[" * 100_000)


_PROGRAM = """
import json, os, sys, urllib.request

def post(path, body):
    head = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, json.dumps(body).encode(), head)
    return json.load(urllib.request.urlopen(request))

said = post("/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]})
assert said["choices"][0]["message"]["content"]
assert len(post("/embeddings", {"input": "a cat"})["data"][0]["embedding"]) == 384
sys.exit(7)
"""


def test_the_command_serves_a_program_and_sums_its_ledger_up(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = str(tmp_path / "ledger")
    arguments = [*attached(stub.url), "embedder=hashing", f"cache_dir={tmp_path / 'cache'}", "--out", ledger]
    statuses = [proxy_command([*arguments, "--", sys.executable, "-c", _PROGRAM]) for _ in range(2)]
    assert statuses == [7, 7]
    assert stub.state.count == 1
    capsys.readouterr()
    assert proxy_command(["--summary", ledger]) == 0
    said = capsys.readouterr().out
    assert "write       chat               1       0" in said  # the second time is the same call, booked once
    assert "embeddings: 2 requests, 2 texts" in said
    assert proxy_command(["--summary", str(tmp_path / "nowhere")]) == 2


def test_the_summary_says_what_embedding_cost_and_of_which_day_the_prices_are(tmp_path: Path) -> None:
    """Two requests of the program, 300,000 embedded tokens at two cents a million."""
    ledger = EmbeddingLedger(tmp_path)
    for tokens in (100_000, 200_000):
        ledger.add_paid(EmbeddingRecord("", "write", "", 1, 3, 0.1, tokens))
        ledger.note(ProxyScope("program"), ["abc"], 0.1)
    ledger.note(ProxyScope("program"), ["abc"], 0.0)  # its vector was there already
    ledger.close()
    said = summary(tmp_path, Price(1, 1, "2026-03"), EmbeddingPrice(0.02, "2026-07-03"))
    assert "dollars: 0.0000, list prices of 2026-03" in said
    assert "dollars of 300000 embedded tokens: 0.0060, list prices of 2026-07-03" in said


@pytest.mark.real_model
def test_the_embedded_model_answers_openais_client(tmp_path: Path) -> None:
    from memsys.llm.backbone import Backbone

    engine_config = LlamaCppEngineConfig(
        model_file="smollm2_135m_gguf", context_length=512, parallel=1, batch_invariant=True, threads=None, port=0
    )
    config = backbone_config(engine=engine_config, model="SmolLM2-135M-Instruct", context_length=512, timeout_s=120.0)
    engine = engine_config.build()

    async def run() -> tuple[Any, list[CallRecord]]:
        calls: list[CallRecord] = []
        async with Backbone(config, engine, on_call=calls.append, log_dir=tmp_path, run_seed=0) as backbone:
            server = make_preset(ProxySettings, SETTINGS)
            async with ProxyServer(ProxyParts("smollm2", backbone.bind, None), server) as proxy:
                client = proxy.clients.admit("package")
                asked: Any = {"messages": [{"role": "user", "content": "The capital of France?"}], "max_tokens": 8}
                async with openai.AsyncOpenAI(base_url=proxy.url(client), api_key="none") as ai:
                    reply = await ai.chat.completions.create(model="any", temperature=0, **asked)
        return reply, calls

    try:
        reply, calls = asyncio.run(run())
    finally:
        engine.stop()
    assert reply.choices[0].message.content
    assert reply.usage.completion_tokens == calls[0].completion_tokens <= 8
    assert calls[0].endpoint == "llamacpp-0"
