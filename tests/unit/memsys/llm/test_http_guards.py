"""What comes from outside is bounded, pauses are kept as asked, and no proxy stands before this machine."""

import asyncio
import gzip
import socket
import time
import zlib
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from memsys.embedding.hosted import HostedEmbedderConfig
from memsys.endpoint_urls import asked_address
from memsys.errors import BackboneError, BackboneUnusableError, ConfigError
from memsys.http_bodies import BodyError, BodyTooLargeError, BoundedBody
from memsys.llm.engines.openai import OpenAIEngineConfig
from memsys.llm.ledger import CallRecord
from memsys.llm.outcomes import is_kept
from memsys.llm.refusals import stated_window
from memsys.proxies import is_local, proxy_of
from memsys.retrying import asked_pause
from memsys.vocabulary import Completion
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, stub

BOMB = gzip.compress(b" " * 50_000_000)
VARIABLES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def ask(url: str, folder: Path, **changes: Any) -> CallRecord:
    records: list[CallRecord] = []

    async def run() -> None:
        enter()
        config = backbone_config(**{"transport_retries": 1, "token_counter": "characters", **changes})
        engine = StubEngine([url], name="openai")
        async with open_backbone(engine, folder, config=config, on_call=records.append) as backbone:
            await backbone.bind("c1").ask(role(schema=None), {"text": "hello"}, key="t1")

    asyncio.run(run())
    return records[0]


def body(pieces: list[bytes], limit: int = 1000, **headers: str) -> bytes:
    found = BoundedBody({name.replace("_", "-").lower(): value for name, value in headers.items()}, limit, "a.setting")
    for piece in pieces:
        found.add(piece)
    return found.whole()


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "deflate"])
def test_packed_bodies_are_read_in_any_pieces(packing: str) -> None:
    text = b"hello " * 20
    packed = zlib.compress(text) if packing == "deflate" else gzip.compress(text)
    assert body([packed], Content_Encoding=packing) == text
    assert body([packed[place : place + 1] for place in range(len(packed))], Content_Encoding=packing) == text
    with pytest.raises(BodyError, match="middle of its"):
        body([packed[:-9]], Content_Encoding=packing)


@pytest.mark.parametrize(
    ("pieces", "headers"),
    [
        ([b"a" * 600, b"a" * 600], {}),
        ([], {"Content_Length": "1001"}),
        ([], {"Content_Length": "9" * 400}),
        ([BOMB], {"Content_Encoding": "gzip"}),
        ([zlib.compress(b" " * 10_000_000)], {"Content_Encoding": "deflate"}),
    ],
)
def test_a_body_above_its_limit_is_refused(pieces: list[bytes], headers: dict[str, str]) -> None:
    with pytest.raises(BodyTooLargeError, match=r"larger than 1,000 bytes.* raise a\.setting"):
        body(pieces, **headers)


def test_a_packing_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(BodyError, match="'br'"):
        body([b"x"], Content_Encoding="br")
    with pytest.raises(BodyError, match="cannot be decompressed"):
        body([b"x" * 50], Content_Encoding="gzip")


@pytest.mark.parametrize("bomb", [BOMB, gzip.compress(b'{"a": "' + b"a" * 10_000_000 + b'"}')])
def test_a_bomb_is_neither_unpacked_nor_taken(tmp_path: Path, bomb: bytes) -> None:
    with stub() as server:
        server.state.bodies = lambda _: (200, bomb, {"Content-Encoding": "gzip"})
        with pytest.raises(BackboneError, match=r"larger than .* backbone\.max_reply_bytes"):
            ask(server.url, tmp_path)


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    with stub() as server:
        server.state.replies = lambda _: "a" * 3000
        ask(server.url, tmp_path)
        with pytest.raises(BackboneError, match="larger than 2,000 bytes"):
            ask(server.url, tmp_path, max_reply_bytes=2000)


def embed(server: StubServer, text: str, **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "name": "e", "model": "m", "dimension": 2, "base_url": server.url, "api_key_env": None, "max_batch": 8,
        "max_chars": 100, "cache_entries": 10, "timeout_s": 5, "retries": 1, "backoff_s": 0.01,
    }  # fmt: skip
    embedder = HostedEmbedderConfig(**{**settings, **changes}).build()
    try:
        return asyncio.run(embedder.embed([text]))
    finally:
        embedder._server._client.close()


VECTOR = {"data": [{"index": 0, "embedding": [1.0, 0.0]}]}


def test_an_embedder_has_the_same_guards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with stub() as server:
        replies = [(429, {}, {"Retry-After": "0.3"}), (200, VECTOR)]
        server.state.bodies = lambda _: replies.pop(0) if len(replies) > 1 else replies[0]
        begun = time.monotonic()
        assert embed(server, "a").shape == (1, 2) and time.monotonic() - begun >= 0.3
        server.state.bodies = lambda _: (200, BOMB, {"Content-Encoding": "gzip"})
        with pytest.raises(BackboneError, match="larger than"):
            embed(server, "b")
        server.state.bodies = lambda _: (404, {"detail": "Not Found"})
        with pytest.raises(BackboneError, match=r"most servers want /v1 in embedder\.base_url"):
            embed(server, "c", base_url=server.url.removesuffix("/v1"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "2.5"}, 2.5),
        ({"retry-after-ms": "2500", "Retry-After": "60"}, 2.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-tokens": "6ms"}, 0.006),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        (
            {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "0"},
            9.0,
        ),
        (  # as OpenAI writes them in every reply, also in one of status 500: nothing is used up
            {"x-ratelimit-reset-requests": "6ms", "x-ratelimit-remaining-requests": "9999"},
            0.0,
        ),
        ({"X-RateLimit-Reset": "7"}, 7.0),
        ({"Retry-After": "soon"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "inf"}, 0.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "9" * 400}, 0.0),
        ({"Retry-After": "Thu, 99 Foo 99999999999 99:99:99 GMT"}, 0.0),
        ({}, 0.0),
    ],
)
def test_pauses_are_read_as_servers_write_them(headers: dict[str, str], seconds: float) -> None:
    assert asked_pause(headers) == pytest.approx(seconds)


def test_pauses_that_name_a_time() -> None:
    ahead = time.time() + 40
    assert asked_pause({"Retry-After": formatdate(ahead, usegmt=True)}) == pytest.approx(40, abs=1.5)
    assert asked_pause({"X-RateLimit-Reset": str(int(ahead))}) == pytest.approx(40, abs=1.5)
    assert asked_pause({"X-RateLimit-Reset": str(int(ahead * 1000))}) == pytest.approx(40, abs=1.5)


def test_a_pause_that_is_asked_for_uses_up_no_retry_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr("memsys.llm.rate_limits.monotonic", lambda: sum(slept))
    with stub() as server:
        left = [(429, {"error": {"message": "slow down"}}, {"Retry-After": "20"})] * 4
        server.state.bodies = lambda request: left.pop() if left else None
        record = ask(server.url, tmp_path, transport_retries=0)
        assert record.transport_retries == 4 and slept == [20.0] * 4
        assert "slow down; waiting 20 s" in caplog.text

        slept.clear()
        server.state.bodies = lambda _: (429, {"error": {"message": "slow down"}}, {"Retry-After": "90"})
        with pytest.raises(BackboneError, match="slow down"):
            ask(server.url, tmp_path, transport_retries=1, max_wait_s=120)
        assert slept[:2] == [90.0, 30.0]
        with pytest.raises(BackboneError, match="slow down"):
            ask(server.url, tmp_path, transport_retries=0, max_wait_s=30)
    assert "30 s of the 90 s that it asks for (backbone.max_wait_s)" in caplog.text


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.0.0.1", True), ("127.8.9.1", True), ("127.1", True), ("::1", True), ("0.0.0.0", True),
     ("::ffff:127.0.0.1", True), ("a.localhost", True), ("LOCALHOST.", True), ("10.0.0.1", False),
     ("api.openai.com", False), ("127.example.com", False), ("::2", False)],
)  # fmt: skip
def test_what_is_this_machine(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_of("http://api.example.com/v1") is None
    monkeypatch.setenv("ALL_PROXY", "http://everything:1")
    monkeypatch.setenv("HTTPS_PROXY", "secure:2")
    monkeypatch.setenv("NO_PROXY", "inside.example.com")
    found = [
        proxy_of(url) for url in ("http://a.example.com/v1", "https://a.example.com", "https://inside.example.com")
    ]
    assert [(one.address, one.variable) if one else None for one in found] == [
        ("http://everything:1", "ALL_PROXY"), ("http://secure:2", "HTTPS_PROXY"), None,
    ]  # fmt: skip
    for url in ("http://127.0.0.1:8000/v1", "https://localhost/v1", "http://[::1]:8000/v1"):
        assert proxy_of(url) is None
    for unusable in ("socks5://user:sesame@everything:1", "http://user:sesame@everything:99999"):
        monkeypatch.setenv("ALL_PROXY", unusable)
        with pytest.raises(ConfigError, match=r"ALL_PROXY .*NO_PROXY") as raised:
            proxy_of("http://a.example.com/v1")
        assert "sesame" not in str(raised.value)


def test_no_proxy_stands_before_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with stub() as server:
        assert ask(server.url, tmp_path).transport_retries == 0


def test_a_failure_on_the_way_through_a_proxy_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://user:sesame@127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(BackboneError, match=r"variable HTTP_PROXY; NO_PROXY=host\.invalid") as raised:
        ask("http://host.invalid/v1", tmp_path, transport_retries=0)
    assert "sesame" not in str(raised.value)


def test_a_proxy_that_wants_a_password_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was said of the server."""
    with stub() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        proxy.state.bodies = lambda _: (407, b"Proxy Authentication Required")
        said = r"the proxy refused the request with status 407: Proxy Auth.* variable HTTP_PROXY; .*user and password"
        with pytest.raises(BackboneUnusableError, match=said):
            ask("http://host.invalid/v1", tmp_path)


def test_an_address_that_lacks_its_version_is_shown_with_the_remedy(tmp_path: Path) -> None:
    with stub() as server:
        root = server.url.removesuffix("/v1")
        for reply in ((404, {"detail": "Not Found"}), (200, b"<html></html>"), (200, {"error": "Unexpected endpoint"})):
            server.state.bodies = lambda _, reply=reply: reply
            with pytest.raises(BackboneError, match=rf"{root}/chat/completions; .*base_urls: {root}/v1"):
                ask(root, tmp_path, transport_retries=0)
    assert asked_address("http://h/v1/chat/completions", "s") == "asked: http://h/v1/chat/completions"


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ("This model's maximum context length is 512 tokens. However, you requested 1078 tokens", 512),
        ("request (9031 tokens) exceeds the available context size (8192 tokens)", 8192),
        ("the prompt is longer than the 4,096-token context window", 4096),
        ("prompt (78) + max_tokens (1000) > max_model_len=512", 512),
        ("it exceeds the context length", None),
    ],
)
def test_the_window_that_a_server_states(said: str, window: int | None) -> None:
    assert stated_window(said) == window


def test_a_smaller_window_names_the_setting(tmp_path: Path) -> None:
    said = "This model's maximum context length is 512 tokens. However, you requested 1078 tokens"
    with stub() as server:
        server.state.bodies = lambda _: (400, {"error": {"message": said}})
        with pytest.raises(BackboneError, match=r"server's context of 512 .* set backbone\.context_length=512"):
            ask(server.url, tmp_path)


def test_a_reply_far_longer_than_any_is_not_kept() -> None:
    assert [is_kept(Completion("a" * size, 1, 1, 0.0, "stop")) for size in (1, 500_000, 500_001)] == [True, True, False]


@pytest.mark.parametrize("page", ["/v1/chat/completions", "/v1/completions/", "/v1/embeddings", "/chat/completions"])
def test_the_address_of_one_page_is_refused(page: str) -> None:
    with pytest.raises(ConfigError, match=r"base_urls: .* which is added to each request; write http://h"):
        OpenAIEngineConfig(base_urls=[f"http://h{page}"], model="m", api_key_env=None)
