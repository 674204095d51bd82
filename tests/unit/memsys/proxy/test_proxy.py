"""The proxy, asked by OpenAI's own client and by programs that misbehave, in front of a stub backbone."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.config.presets import make_preset
from eval.config.prices import EmbeddingPrice, Price
from eval.proxy import SETTINGS
from eval.proxy import main as proxy_command
from eval.running.proxy.ledger import EmbeddingLedger, summary
from eval.runs.embeddings import EmbeddingRecord
from memsys.embedding.hashing import HashingEmbedder
from memsys.errors import MemsysError
from memsys.llm.cache import ReplyCache
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig
from memsys.llm.ledger import CallRecord
from memsys.proxy.clients import ProxyClient, ProxyScope
from memsys.proxy.errors import RefusedRequestError
from memsys.proxy.fitting import fitted
from memsys.proxy.requests import read_completion_request, read_embedding_request, read_object
from memsys.proxy.server import JsonMode, ProxyParts, ProxyServer, ProxySettings, ToolCalls
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


def completion_of(text: str, finish_reason: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


SCHEMA_FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


@asynccontextmanager
async def opened(
    stub: StubServer,
    folder: Path,
    *,
    cached: bool = False,
    json_mode: JsonMode = "bound",
    tool_calls: ToolCalls = "served",
    **config: Any,
) -> AsyncIterator[Open]:
    calls: list[CallRecord] = []
    embedded: list[tuple[ProxyScope, int]] = []
    server = ProxySettings(0, 64, max_body_mb=1, body_timeout_s=0.3, json_mode=json_mode, tool_calls=tool_calls)
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


def test_a_scope_that_is_said_again_is_the_same_step_and_what_it_leaves_out_stays(
    stub: StubServer, tmp_path: Path
) -> None:
    """Each PUT began again: the same sample again, in a conversation without a name."""

    async def run() -> tuple[list[tuple[str, str, int]], ProxyScope]:
        async with opened(stub, tmp_path) as world:
            for item in ("q1", "q1", "q2", "q1"):
                body = json.dumps({"phase": "answer", "item": item}).encode()
                sent = post("/scope", body, world.client.token).replace(b"POST", b"PUT", 1)
                assert b" 200 " in (await world.raw(sent)).split(b"\r\n")[0]
                await world.say(temperature=1.0)
            return [(call.phase, call.item, call.attempt) for call in world.calls], world.client.scope

    calls, scope = asyncio.run(run())
    assert calls == [("answer", "q1", 0), ("answer", "q1", 1), ("answer", "q2", 0), ("answer", "q1", 2)]
    assert scope == ProxyScope("conv-1", "answer", "q1")


@pytest.mark.parametrize("send_seed", [True, False])
def test_repetitions_differ_at_temperature_0_where_the_server_is_sent_none(
    stub: StubServer, tmp_path: Path, send_seed: bool
) -> None:
    """The server's own temperature holds there, and each retry of a package got the first reply from the cache."""

    async def run() -> list[str]:
        async with opened(stub, tmp_path, cached=True, send_temperature=False, send_seed=send_seed) as world:
            for _ in range(2):
                await world.say(temperature=0.0)
            return [call.request_hash for call in world.calls]

    first, second = asyncio.run(run())
    assert first != second and stub.state.count == 2


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


def test_a_token_may_begin_as_the_address_goes_on(stub: StubServer, tmp_path: Path) -> None:
    """One token in 4,096 was cut at its own letters: chats were read as completions, and the log showed the token."""

    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            world.client.token = "v1" + world.client.token[2:]
            async with openai.AsyncOpenAI(base_url=world.proxy.url(world.client), api_key="none") as by_address:
                await by_address.chat.completions.create(model="any", messages=HELLO)  # type: ignore[call-overload]

    asyncio.run(run())
    assert stub.state.count == 1


@pytest.mark.parametrize("name", ["item", "conversation"])
def test_a_name_that_no_file_can_hold_is_refused_before_the_call(stub: StubServer, tmp_path: Path, name: str) -> None:
    """The call was made and paid, and then its row could not be written."""

    async def run() -> bytes:
        async with opened(stub, tmp_path) as world:
            body = b'{"messages": [{"role": "user", "content": "Hi"}]}'
            head = f"POST /{world.client.token}/v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
            said = f"x-memsys-{name}: ".encode() + b"Zo\xeb\r\n" + f"Content-Length: {len(body)}\r\n\r\n".encode()
            return await world.raw(head.encode() + said + body)

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 400") and f"the name of the {name} is not UTF-8".encode() in answer
    assert stub.state.count == 0


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
        ({}, {"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ({"json_mode": "free"}, {"response_format": {"type": "json_object"}}, {"response_format": None}),
        ({"json_mode": "free"}, {"response_format": SCHEMA_FORMAT}, {"response_format": SCHEMA_FORMAT}),
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


CHAT, PLAIN = "/chat/completions", "/completions"
SAID = {"role": "user", "content": "Hello"}
NONSENSE: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {}, r"messages=None must be a list of at least one"),
    (CHAT, {"messages": []}, r"messages=\[\] must be a list of at least one"),
    (CHAT, {"messages": ["Hello"]}, r"messages\[0\]='Hello' must be an object with a role"),
    (CHAT, {"messages": [{"content": "Hello"}]}, r"messages\[0\].role is missing; it must be one of developer, system"),
    (CHAT, {"messages": [{"role": "me", "content": ""}]}, r"messages\[0\].role='me' must be one of developer, system"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": 3}]},
        r"messages\[0\].content=3 must be a text or a list of parts",
    ),
    (CHAT, {"messages": [SAID, {"role": "assistant"}]}, r"messages\[1\].content is missing"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, r"messages\[0\].content .* not text"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": "x"}]}, r"messages\[0\].tool_calls='x' must be a list of"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"a": 1}]}]}, r"tool_calls\[0\].type is missing"),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{"type": "function", "function": {"arguments": {}}}]}]},
        r"tool_calls\[0\].function.arguments={} must be a text",
    ),
    (CHAT, {"messages": [SAID], "temperature": 3}, "temperature=3 must be a number from 0 to 2"),
    (CHAT, {"messages": [SAID], "temperature": "hot"}, "temperature='hot' must be a number from 0 to 2"),
    (CHAT, {"messages": [SAID], "temperature": True}, "temperature=True must be a number"),
    (CHAT, {"messages": [SAID], "temperature": 10**400}, "temperature=1000.* must be a number from 0 to 2"),
    (CHAT, {"messages": [SAID], "top_p": 1.5}, "top_p=1.5 must be a number from 0 to 1"),
    (CHAT, {"messages": [SAID], "presence_penalty": -3}, "presence_penalty=-3 must be a number from -2 to 2"),
    (CHAT, {"messages": [SAID], "n": 0}, "n=0 must be a whole number from 1 to 128"),
    (CHAT, {"messages": [SAID], "n": 129}, "n=129 must be a whole number from 1 to 128"),
    (CHAT, {"messages": [SAID], "max_tokens": 0}, "max_tokens=0 must be a whole number, at least 1"),
    (CHAT, {"messages": [SAID], "max_completion_tokens": 2.5}, "max_completion_tokens=2.5 must be a whole number"),
    (CHAT, {"messages": [SAID], "stop": 5}, "stop=5 must be a text or a list of up to 4 texts"),
    (CHAT, {"messages": [SAID], "stop": list("abcde")}, "stop=.* must be a text or a list of up to 4 texts"),
    (CHAT, {"messages": [SAID], "tools": ["a"]}, r"tools=\['a'\] must be a list of tools, each an object"),
    (CHAT, {"messages": [SAID], "tools": {"a": 1}}, "tools={'a': 1} must be a list of tools"),
    (CHAT, {"messages": [SAID], "tools": [{"name": "a"}]}, r"tools\[0\].type=None must be a text"),
    (CHAT, {"messages": [SAID], "tools": [{"type": "function"}]}, r"tools\[0\].function=None must be an object with a"),
    (
        CHAT,
        {"messages": [SAID], "tools": [{"type": "function", "function": {"name": "a", "parameters": []}}]},
        r"tools\[0\].function.parameters=\[\] must be an object",
    ),
    (CHAT, {"messages": [SAID], "tool_choice": 5}, "tool_choice=5 must be one of none, auto, required, or an object"),
    (
        CHAT,
        {"messages": [SAID], "tool_choice": {"type": "function", "function": "a"}},
        "or an object that names a tool",
    ),
    (CHAT, {"messages": [SAID], "tool_choice": {"function": {"name": ["a"]}}}, "or an object that names a tool"),
    (CHAT, {"messages": [SAID], "logit_bias": "x"}, "logit_bias='x' must be an object of token ids"),
    (CHAT, {"messages": [SAID], "logit_bias": {"3": 500}}, "logit_bias=.* with numbers from -100 to 100"),
    (
        CHAT,
        {"messages": [SAID], "response_format": {"type": "xml"}},
        "response_format=.* text, json_object, json_schema",
    ),
    (CHAT, {"messages": [SAID], "response_format": {"type": "json_schema"}}, "with an object json_schema"),
    (CHAT, {"messages": [SAID], "stream": "yes"}, "stream='yes' must be true or false"),
    (CHAT, {"messages": [SAID], "stream_options": {"include_usage": 1}}, "stream_options.include_usage=1 must be true"),
    (CHAT, {"messages": [SAID], "logprobs": 5}, "logprobs=5 must be true or false"),
    (CHAT, {"messages": [SAID], "top_logprobs": "x"}, "top_logprobs='x' must be a whole number from 0 to 20"),
    (CHAT, {"messages": [SAID], "model": ["a"]}, r"model=\['a'\] must be a text"),
    (CHAT, {"messages": [SAID], "metadata": 5}, "metadata=5 must be an object"),
    (PLAIN, {"prompt": "a", "stream_options": [1]}, r"stream_options=\[1\] must be an object"),
    (PLAIN, {"prompt": "a", "response_format": "json"}, "response_format='json' must be an object"),
    (PLAIN, {"prompt": "a", "temperature": float("nan")}, "temperature=nan must be a number from 0 to 2"),
    (PLAIN, {"prompt": "a", "logprobs": True}, "logprobs=True must be a whole number from 0 to 20"),
    (PLAIN, {"prompt": [1, 2]}, r"prompt=\[1, 2\] must be one text"),
    (PLAIN, {"prompt": "a", "echo": True}, "echo=True is not served here"),
    (PLAIN, {"prompt": "a", "suffix": "b"}, "suffix='b' is not served here"),
    (PLAIN, {"prompt": "a", "best_of": 3}, "best_of=3 is not served here"),
    ("/embeddings", {"input": [[1, 2]]}, "input=.* token ids"),
    ("/embeddings", {"input": "a", "encoding_format": "int8"}, "encoding_format='int8' must be one of float, base64"),
    ("/embeddings", {"input": "a", "dimensions": 0}, "dimensions=0 must be a whole number, at least 1"),
]
MALFORMED: list[tuple[str, bytes, int, str]] = [
    (CHAT, b"{", 400, "is not JSON"),
    (CHAT, b"[]", 400, "must be a JSON object"),
    ("/images/generations", b"{}", 404, "not served"),
    (CHAT, b"x" * 1_100_000, 413, "larger than 1 MB, the limit; .* raise max_body_mb"),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [*((path, json.dumps(body).encode(), 400, said) for path, body, said in NONSENSE), *MALFORMED],
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
    """A third of these went to the backbone: it took some, and llama.cpp called others a fault of the server's."""

    async def run() -> tuple[list[bytes], MemsysError | None]:
        async with opened(stub, tmp_path) as world:
            replies = [await world.raw(post(path, body, world.client.token)) for _ in range(2)]
            return replies, world.client.failure

    replies, failure = asyncio.run(run())
    assert (failure is None) == (status == 404)  # a program may try what is served
    assert failure is None or re.search(f"^{path} was refused: .*{said}", str(failure))
    for reply in replies:
        head, _, text = reply.partition(b"\r\n\r\n")
        assert int(head.split(b" ")[1]) == status
        error = json.loads(text)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert re.search(said, error["message"])
        assert error["type"] == "invalid_request_error"
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert caplog.records[0].getMessage().startswith("package: ") or status == 404
    assert re.search(said, caplog.records[0].getMessage())
    assert stub.state.count == 0


def test_half_a_surrogate_pair_is_replaced_before_it_is_embedded(stub: StubServer, tmp_path: Path) -> None:
    """Small models write them as escapes of JSON, and no tokenizer takes them."""

    async def run() -> bytes:
        async with opened(stub, tmp_path) as world:
            return await world.raw(post("/embeddings", rb'{"input": ["a\ud800b", "c"]}', world.client.token))

    head, _, text = asyncio.run(run()).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == b"200"
    assert len(json.loads(text)["data"]) == 2
    assert read_embedding_request({"input": ["a\ud800b"]}).texts == ("a\ufffdb",)


def test_a_fault_of_the_proxy_itself_is_answered_noted_and_known(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, int, str]] = []

    async def broken(self: HashingEmbedder, texts: Any) -> Any:
        raise ZeroDivisionError("no dimension")

    async def run() -> tuple[bytes, ProxyClient]:
        async with opened(stub, tmp_path) as world:
            parts = world.proxy._parts
            world.proxy._parts = replace(parts, on_failure=lambda scope, *rest: noted.append(rest))
            return await world.raw(post("/embeddings", b'{"input": "a"}', world.client.token)), world.client

    monkeypatch.setattr(HashingEmbedder, "embed", broken)
    reply, client = asyncio.run(run())
    head, _, text = reply.partition(b"\r\n\r\n")
    said = "a fault of the proxy, ZeroDivisionError: no dimension; please report it"
    assert head.split(b" ")[1] == b"500" and b"x-should-retry: false" in head
    assert json.loads(text)["error"]["message"] == said
    assert str(client.failure) == said
    assert noted == [("/embeddings", 500, said)]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"package: /embeddings was not answered: {said}"
    ]


TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "store", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [SAID], **dict.fromkeys(("n", "stop", "stream", "tools", "max_tokens", "temperature"))}),
        (CHAT, {"messages": [SAID], "model": "gpt-4o", "store": False, "top_p": 0.1, "max_tokens": 2000}),  # mem0ai
        (
            CHAT,
            {"messages": [SAID], "tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "store"}}},
        ),
        (CHAT, {"messages": [SAID], "tools": [{"type": "custom", "custom": {"name": "store"}}], "tool_choice": "auto"}),
        (CHAT, {"messages": [SAID, {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}]}),
        (CHAT, {"messages": [SAID, {"role": "tool", "tool_call_id": "c", "content": "done"}]}),
        (CHAT, {"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}], "name": "b"}]}),
        (CHAT, {"messages": [SAID], "logprobs": True, "top_logprobs": 2, "logit_bias": {"6432": 1}}),  # graphiti
        (CHAT, {"messages": [SAID], "response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}),
        (
            CHAT,
            {"messages": [SAID], "temperature": 2, "top_p": 0, "n": 128, "stop": list("abcd"), "seed": 5, "user": "a"},
        ),
        (CHAT, {"messages": [SAID], "top_k": -1, "min_p": 0.1, "repetition_penalty": 1.1}),  # vLLM's
        (PLAIN, {"prompt": ["a"], "logprobs": 1, "echo": False, "suffix": None, "best_of": 1}),
        (PLAIN, {"prompt": "a", "n": 2, "best_of": 2, "stop": "b"}),
    ],
)
def test_what_openai_takes_and_packages_send_is_taken(path: str, body: dict[str, Any]) -> None:
    asked = read_completion_request(path, body, 10)
    assert asked.choices == (body.get("n") or 1)
    assert asked.ignored == ()


def test_a_program_that_hangs_and_one_that_dies_are_said_once(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[tuple[str, int, str]] = []

    async def run() -> tuple[bytes, Any]:
        async with opened(stub, tmp_path) as world:
            parts = world.proxy._parts
            world.proxy._parts = replace(parts, on_failure=lambda scope, *rest: noted.append(rest))
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
    assert noted == [("/chat/completions", 408, "no whole request within 0.3 s")]
    assert [record.getMessage() for record in caplog.records] == [
        "package: no whole request within 0.3 s",
        "package: it disconnected before its request was complete",
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


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ("400", "stub failure 400"),
        ("tools", "Failed to parse tools: Missing tool type"),
    ],
)
def test_what_the_backbones_server_refuses_is_the_programs_request(
    stub: StubServer, tmp_path: Path, failure: str, said: str
) -> None:
    """It was an error 502, and what llama.cpp says with status 500 of a request was sent six times."""
    stub.state.every = failure

    async def run() -> None:
        async with opened(stub, tmp_path, transport_retries=3) as world:
            with pytest.raises(openai.BadRequestError, match=said) as caught:
                await world.say()
            assert "check that the server is running" not in str(caught.value)

    asyncio.run(run())
    assert stub.state.count == 1


@pytest.mark.parametrize(
    ("status", "sent", "content", "refusal"),
    [
        (400, {"error": {"message": "filtered", "code": "content_filter"}}, "", "filtered"),
        (200, completion_of("half an ans", "content_filter"), "half an ans", None),
        (200, completion_of("", "SAFETY"), "", None),
    ],
)
def test_what_a_filter_withholds_reaches_the_program_in_openais_words_and_is_booked(
    stub: StubServer, tmp_path: Path, status: int, sent: dict[str, Any], content: str, refusal: str | None
) -> None:
    stub.state.bodies = lambda request: (status, sent)

    async def run() -> tuple[Any, Open]:
        async with opened(stub, tmp_path, cached=True) as world:
            return await world.say(), world

    reply, world = asyncio.run(run())
    (choice,), (call,) = reply.choices, world.calls
    assert (choice.finish_reason, choice.message.content) == ("content_filter", content)
    assert choice.message.refusal == refusal and call.outcome == "withheld" and world.client.failure is None
    stub.state.bodies = None
    reply, _ = asyncio.run(run())
    assert reply.choices[0].finish_reason == "stop"  # it was not stored


def test_a_key_that_the_backbones_server_refuses_is_no_fault_of_the_program(stub: StubServer, tmp_path: Path) -> None:
    stub.state.every = "401"

    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            with pytest.raises(openai.InternalServerError, match="stub failure 401"):
                await world.say()

    asyncio.run(run())


@pytest.mark.parametrize("delay", [0.5, 1.6])
def test_a_program_that_hung_up_and_asks_again_gets_the_reply_it_did_not_wait_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, delay: float
) -> None:
    """Each time it asked it was given another sample, and each was a row; a run that was taken up gave the first.

    With the shorter delay the reply is there before the program asks again, with the longer one it is not.
    """

    async def run(patience: float) -> tuple[list[str], list[tuple[str, str, int]], list[Any]]:
        async with opened(stub, tmp_path, cached=True) as world:
            async with world.ai as ai:
                impatient = ai.with_options(timeout=patience, max_retries=9)
                asked: Any = {"model": "any", "messages": HELLO, "temperature": 1.0}
                first = await impatient.chat.completions.create(**asked)
                second = await ai.chat.completions.create(**asked)
            texts = [one.choices[0].message.content for one in (first, second)]
            return texts, [(call.item, call.key, call.attempt) for call in world.calls], world.calls

    with StubServer(delay=delay) as stub:
        texts, rows, calls = asyncio.run(run(0.3))
        assert stub.state.count == 2
        assert [attempt for _, _, attempt in rows] == [0, 1]
        assert not any(call.cache_hit for call in calls)
        again_texts, again_rows, again = asyncio.run(run(30.0))  # as after a kill: replies are there at once
        assert stub.state.count == 2
    assert (again_texts, again_rows) == (texts, rows)
    assert all(call.cache_hit for call in again)
    messages = {record.getMessage() for record in caplog.records}
    assert "package: it disconnected and retried; it gets the reply to its first request" in messages


def test_samples_that_are_asked_for_at_once_are_no_repetition_of_one_that_was_left(tmp_path: Path) -> None:
    with StubServer(delay=0.2) as stub:

        async def run() -> list[int]:
            async with opened(stub, tmp_path) as world:
                await asyncio.gather(*(world.say(temperature=1.0) for _ in range(3)))
                return sorted(call.attempt for call in world.calls)

        assert asyncio.run(run()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("asked", "sent", "cut"),
    [
        ({"max_tokens": 100_000}, 4096 - 64 - 8 - 2, True),
        ({"max_tokens": 100_000, "tools": [TOOL]}, 4096 - 64 - 8 - 200 - 12, True),
        ({"max_tokens": 100_000, "prompt": "a"}, 4096 - 64 - 1, True),
        ({"max_tokens": 3_900}, 3_900, False),
        ({"max_tokens": 3_000, "prompt": "word " * 500}, 3_000, False),
        ({"max_tokens": 3_000, "prompt": "word " * 2_000}, 4096 - 64 - 2_000, True),
        ({"max_tokens": 3_000, "prompt": "word " * 9_000}, 3_000, False),
    ],
)
def test_a_limit_is_cut_to_what_the_context_holds(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: dict[str, Any], sent: int, cut: bool
) -> None:
    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            path = "/completions" if "prompt" in asked else "/chat/completions"
            body = asked if "prompt" in asked else {"messages": HELLO, **asked}
            reply = await world.raw(post(path, json.dumps(body).encode(), world.client.token))
            assert b" 200 " in reply.split(b"\r\n")[0]

    asyncio.run(run())
    assert stub.state.requests[0]["max_tokens"] == sent
    said = [record.getMessage() for record in caplog.records]
    assert any(f"max_tokens={asked['max_tokens']} and the prompt do not fit" in one for one in said) == cut


def test_quotes_and_line_breaks_count_once() -> None:
    """In the JSON of the messages they counted twice: a prompt full of them lost its reply, though both fit."""

    class Characters:
        context_length = 2_000

        async def count_tokens(self, text: str) -> int:
            return len(text)

    asked = {"messages": [{"role": "user", "content": '"a"\n' * 300}], "max_tokens": 700}
    model: Any = Characters()
    request = read_completion_request("/chat/completions", asked, 64)
    assert asyncio.run(fitted(request, model)) is request
    longer = read_completion_request("/chat/completions", {**asked, "max_tokens": 800}, 64)
    assert asyncio.run(fitted(longer, model)).call.max_tokens == 2_000 - 64 - 8 - len("user\n") - 1_200


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
FIELDS = (
    "messages", "prompt", "input", "n", "max_tokens", "temperature", "stream_options", "tools", "dimensions", "x",
    "tool_choice", "logit_bias", "response_format", "stop", "best_of", "echo", "encoding_format",
)  # fmt: skip


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
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--summary`` knew no price, and the folder did not say what had been served."""
    folder = tmp_path / "ledger"
    arguments = [*attached(stub.url), "embedder=hashing", f"cache_dir={tmp_path / 'cache'}", "--out", str(folder)]
    program = ["--", sys.executable, "-c", _PROGRAM, "--api-key", "sk-0123456789abcdef"]
    prices = {"smollm2_135m_vllm": Price(1000.0, 2000.0, "2026-03", "somebody")}
    monkeypatch.setattr("eval.running.proxy.record.load_prices", lambda: prices)
    statuses = [proxy_command([*arguments, *program]) for _ in range(2)]
    assert statuses == [7, 7]
    assert stub.state.count == 1
    capsys.readouterr()
    assert proxy_command(["--summary", str(folder)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"write +chat +1 +0 ", said)  # the second time is the same call, booked once
    assert "embeddings: 2 requests, 2 texts" in said
    assert re.search(r"backbone smollm2_135m_vllm \(.*\), embedder hashing, seed \d+, memsys \d", said)
    assert re.search(r"dollars: 0\.\d*[1-9]\d*, list prices of 2026-03", said)
    assert "failed" not in said
    record = json.loads((folder / "proxy.json").read_text())
    price = {"prompt": 1000.0, "completion": 2000.0, "cached": None, "batch": 1.0}
    assert record["price"] == {**price, "date": "2026-03", "source": "somebody"}
    assert "sk-0123" not in json.dumps(record) and record["command"][-1] == "***"
    assert {entry.name for entry in folder.iterdir()} <= {
        ".lock", "calls.jsonl", "embeddings.jsonl", "proxy.json", "logs",
    }  # fmt: skip
    assert proxy_command(["--summary", str(tmp_path / "nowhere")]) == 2


def test_the_summary_says_what_embedding_cost_and_of_which_day_the_prices_are(tmp_path: Path) -> None:
    """Two requests of the program, 300,000 embedded tokens at two cents a million."""
    ledger = EmbeddingLedger(tmp_path)
    for tokens in (100_000, 200_000):
        ledger.add_paid(EmbeddingRecord("", "write", "", 1, 3, 0.1, tokens))
        ledger.note(ProxyScope("program"), ["abc"], 0.1)
    ledger.note(ProxyScope("program"), ["abc"], 0.0)  # its vector was there already
    ledger.close()
    said = summary(tmp_path, Price(1, 1, "2026-03"), EmbeddingPrice(0.02, "2026-07-03")).notes
    assert "dollars: 0.0000, list prices of 2026-03" in said
    assert "dollars of 300000 embedded tokens: 0.0060, list prices of 2026-07-03" in said


def test_what_an_embedding_cost_stays_with_its_request(tmp_path: Path) -> None:
    """Two requests are paid before either is noted: the first noted had all the tokens, the other none."""
    ledger = EmbeddingLedger(tmp_path)

    async def serve(item: str, tokens: int) -> None:
        ledger.add_paid(EmbeddingRecord("", "write", "", 1, 3, 0.1, tokens))
        await asyncio.sleep(0)
        ledger.note(ProxyScope("program", item=item), ["abc"], 0.1)

    async def serve_both() -> None:
        await asyncio.gather(serve("first", 7), serve("second", 5))

    asyncio.run(serve_both())
    ledger.close()
    rows = [json.loads(line) for line in (tmp_path / "embeddings.jsonl").read_text().splitlines()]
    assert {row["item"]: row["tokens"] for row in rows} == {"first": 7, "second": 5}


def test_a_folder_takes_the_calls_of_one_proxy_alone(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls of another backbone or seed went into the same ledger, and into one summary with them."""
    folder = tmp_path / "ledger"
    arguments = [*attached(stub.url), "embedder=hashing", "use_cache=false", "--out", str(folder)]
    program = ["--", sys.executable, "-c", _PROGRAM]
    assert proxy_command([*arguments, *program]) == 7
    rows = (folder / "calls.jsonl").read_bytes()
    for change in ("seed=77", "backbone.temperature=0.3"):
        assert proxy_command([*arguments, change, *program]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "holds the ledger of a proxy with other settings (proxy.json)" in said and change.split("=")[1] in said
    (folder / "proxy.json").unlink()
    assert proxy_command([*arguments, *program]) == 2
    assert "holds a ledger without proxy.json" in " ".join(capsys.readouterr().err.split())
    assert (folder / "calls.jsonl").read_bytes() == rows
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    assert proxy_command([*arguments[:-1], str(run), *program]) == 2
    assert "holds a run; name another folder" in " ".join(capsys.readouterr().err.split())


_FAILING_PROGRAM = """
import json, os, urllib.error, urllib.request

for body in ({"messages": []}, {"messages": [{"role": "user", "content": "Hello"}]}):
    head = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    try:
        urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), head))
    except urllib.error.HTTPError as error:
        error.read()
"""


def test_failed_calls_are_counted_and_warnings_kept(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary of a program whose every call had failed showed no call and no failure."""
    stub.state.every = "500"
    folder = tmp_path / "ledger"
    arguments = [*attached(stub.url), "embedder=hashing", "backbone.transport_retries=0", "--out", str(folder)]
    assert proxy_command([*arguments, "--", sys.executable, "-c", _FAILING_PROGRAM]) == 0
    assert "failed: 2 requests (1 with status 400, 1 with status 502)" in capsys.readouterr().out
    log = (folder / "logs" / "proxy.log").read_text()
    assert "messages=[] must be a list" in log and "a call failed: role chat" in log
    rows = [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]
    assert [(row["endpoint"], row["status"]) for row in rows] == [
        ("/chat/completions", 400),
        ("/chat/completions", 502),
    ]


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


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET / HTTP/9.x\r\n\r\n",
        b"\x00" * 64 + b"\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_a_client_that_speaks_no_http_is_one_line(
    stub: StubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async def run() -> None:
        async with opened(stub, tmp_path) as world:
            port = int(world.proxy.base_url.split(":")[2].split("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 10)
            writer.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    lines = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(lines) == 1 and lines[0].exc_info is None, lines
    assert "what it sent is not an HTTP request" in lines[0].getMessage() and "\n" not in lines[0].getMessage()
