"""What fails on the way is sent again, what the server refuses is not, and nothing is ever made up."""

import asyncio
import shutil
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from memsys.errors import BackboneError, BackboneUnusableError, ConfigError
from memsys.llm.cache import ReplyCache
from memsys.llm.contract import Reply
from memsys.llm.endpoints import Endpoints
from memsys.llm.engines.contract import Answered, Endpoint, OtherServerError
from memsys.llm.engines.openai import OpenAIEngineConfig
from memsys.llm.http_client import ConnectionFailedError, ExchangeError, HttpClient, HttpRequest
from memsys.llm.ledger import CallRecord
from memsys.llm.refusals import StatedError, refusal, stated_error
from memsys.retrying import asked_pause
from memsys.vocabulary import Json
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, stub


@pytest.fixture
def server() -> Iterator[StubServer]:
    with stub() as running:
        yield running


def ask(
    server: StubServer,
    folder: Path,
    *,
    engine: StubEngine | None = None,
    values: dict[str, str] | None = None,
    **changes: Any,
) -> tuple[Reply, CallRecord]:
    """Ask once; returns the reply and the last row of the ledger."""
    records: list[CallRecord] = []

    async def run() -> Reply:
        enter()
        config = backbone_config(**changes)
        backbone = open_backbone(engine or StubEngine([server.url]), folder, config=config, on_call=records.append)
        async with backbone:
            return await backbone.bind("c1").ask(role(), values or {"text": "hello"}, key="t1")

    reply = asyncio.run(run())
    return reply, records[-1]


@pytest.mark.parametrize("failure", ["500", "429", "garbage", "empty_choices", "drop"])
def test_what_fails_on_the_way_is_sent_again(server: StubServer, tmp_path: Path, failure: str) -> None:
    undisturbed, _ = ask(server, tmp_path)
    server.fail(failure, failure)
    engine = StubEngine([server.url])
    reply, record = ask(server, tmp_path, engine=engine)
    assert reply.value == undisturbed.value is not None
    assert record.transport_retries == 2 and record.attempt == 0
    assert server.state.count == 4
    assert engine.recoveries == (2 if failure == "drop" else 0)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ("500", "status 500: stub failure 500; check that the server is running and reachable"),
        ("429", "status 429: stub failure 429; wait for its rate limit to reset, or lower backbone.max_in_flight"),
        ("garbage", "not JSON"),
        ("empty_choices", "not a completion"),
        ("drop", "Empty reply from server"),
    ],
)
def test_a_failure_that_stays_is_an_error_and_no_reply(
    server: StubServer, tmp_path: Path, failure: str, said: str
) -> None:
    server.fail(*[failure] * 3)
    cache = ReplyCache(tmp_path / "replies")

    async def run() -> None:
        enter()
        async with open_backbone(StubEngine([server.url]), tmp_path, cache=cache) as backbone:
            await backbone.bind("c1").ask(role(), {"text": "hello"}, key="t1")

    with pytest.raises(BackboneError) as raised:
        asyncio.run(run())
    message = str(raised.value)
    assert said in message and "role analyse, t1, conversation c1" in message and "failed 3 times" in message
    assert server.url in message and "resumes" in message
    assert len(cache) == 0


def test_a_hanging_server_is_timed_out(server: StubServer, tmp_path: Path) -> None:
    server.fail("hang")
    _, record = ask(server, tmp_path, timeout_s=0.5)
    assert record.transport_retries == 1 and record.seconds < 0.5  # of the attempt that was answered
    server.fail("hang", "hang", "hang")
    with pytest.raises(BackboneError, match=r"no reply within 0\.1 s \(backbone\.timeout_s\)"):
        ask(server, tmp_path, timeout_s=0.1)


@pytest.mark.parametrize(
    ("sent", "requests", "said"),
    [
        ((308, b"", {"Location": "https://other/v1"}), 1, "sent on to https://other/v1; set backbone.engine.base_urls"),
        ((200, b"<!DOCTYPE html>\n<title>Sign in"), 2, "not JSON .* begins '<!DOCTYPE html> <title>Sign in'"),
        ((200, b'data: {"choices": []}'), 2, "not JSON .* begins 'data: "),
        (
            (401, {"detail": "Not authenticated"}),
            1,
            "no key was sent: backbone.engine.api_key_env=VARIABLE names .* one; then run the same",
        ),
        ((200, {"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]}), 1, "status 401"),
        ((429, {"error": {"message": "No quota", "code": "insufficient_quota"}}), 1, "status 429: No quota; no credit"),
    ],
)
def test_what_a_server_says_that_is_no_completion_is_shown(
    server: StubServer, tmp_path: Path, sent: tuple[Any, ...], requests: int, said: str
) -> None:
    server.state.bodies = lambda request: sent
    with pytest.raises(BackboneError, match=said):
        ask(server, tmp_path, transport_retries=1)
    assert server.state.count == requests


class AnsweringEngine(StubEngine):
    """As litellm's: it needs no address, and finds a key by itself."""

    def __init__(self, status: int) -> None:
        super().__init__([], name="litellm")
        self.endpoints = [Endpoint("litellm", "stub", setting="backbone.engine.api_base")]
        self.status = status

    async def answer(self, path: str, body: Mapping[str, Json], timeout: float) -> Answered:
        return Answered(self.status, {}, b'{"error": {"message": "no"}}')


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "see backbone.model and backbone.engine.api_base; then run the same"),
        (401, "or one that is not accepted: backbone.engine.api_key_env=VARIABLE names .* one; then run the same"),
        (403, "the key may not use this model"),
    ],
)
def test_what_to_do_names_settings_that_the_engine_has(
    server: StubServer, tmp_path: Path, status: int, said: str
) -> None:
    with pytest.raises(BackboneUnusableError, match=said):
        ask(server, tmp_path, engine=AnsweringEngine(status))


@pytest.mark.parametrize("status", [301, 401, 403, 404])
def test_advice_names_no_address_where_no_setting_holds_it(server: StubServer, tmp_path: Path, status: int) -> None:
    """The engines that start their servers choose addresses themselves."""
    engine = StubEngine([server.url])
    engine.endpoints = [Endpoint(server.url, "stub")]
    server.state.bodies = lambda request: (status, {"error": {"message": "no"}}, {"Location": "http://h/"})
    with pytest.raises(BackboneUnusableError) as raised:
        ask(server, tmp_path, engine=engine)
    said = "see backbone.model;" if status == 404 else "another program seems to answer at the address of the server;"
    assert said in str(raised.value) and "base_urls" not in str(raised.value) and " ()" not in str(raised.value)


@pytest.mark.parametrize("status", ["400"])
def test_a_refusal_is_final_and_says_why(server: StubServer, tmp_path: Path, status: str) -> None:
    server.fail(status)
    with pytest.raises(BackboneError, match=f"refused the request with status {status}: stub failure {status}"):
        ask(server, tmp_path)
    assert server.state.count == 1


def test_a_prompt_longer_than_the_context_names_role_and_sizes(server: StubServer, tmp_path: Path) -> None:
    server.fail("context")
    with pytest.raises(BackboneError) as raised:
        ask(server, tmp_path, values={"text": "word " * 99})
    message = str(raised.value)
    for part in ("role analyse, t1, conversation c1", "100 tokens", "50 new tokens", "4096", "backbone.context_length"):
        assert part in message
    assert server.state.count == 1


def test_a_dead_server_is_recovered_once_for_all_who_lost_it(server: StubServer, tmp_path: Path) -> None:
    engine = StubEngine([server.url])

    def restart() -> None:
        time.sleep(0.05)
        server.start()

    engine.on_recover = restart

    async def run() -> list[Reply]:
        enter()
        async with open_backbone(engine, tmp_path, config=backbone_config(max_in_flight=16)) as backbone:
            model = backbone.bind("c1")
            server.stop_listening()
            asks = [model.ask(role(), {"text": str(number)}, key=str(number)) for number in range(16)]
            return list(await asyncio.gather(*asks))

    replies = asyncio.run(run())
    assert engine.recoveries == 1 and all(reply.value for reply in replies)


def test_a_server_that_is_not_ours_may_come_back_by_itself(server: StubServer, tmp_path: Path) -> None:
    engine = StubEngine([server.url])
    engine.recover_error = "does not restart attached servers"

    def back() -> None:
        server.start()
        engine.recover_error = ""

    async def run() -> Reply:
        enter()
        config = backbone_config(transport_retries=5, backoff_s=0.1)
        async with open_backbone(engine, tmp_path, config=config) as backbone:
            server.stop_listening()
            asyncio.get_running_loop().call_later(0.15, back)
            return await backbone.bind("c1").ask(role(), {"text": "x"}, key="x")

    assert asyncio.run(run()).value is not None and engine.recoveries >= 1


def test_another_server_in_the_place_of_ours_is_asked_nothing(server: StubServer, tmp_path: Path) -> None:
    """The request was sent again, and its reply counted as one of the server that the run began with."""
    engine = StubEngine([server.url])

    def another() -> None:
        server.start()
        raise OtherServerError("says version '0.8.0'")

    engine.on_recover = another
    server.stop_listening()
    with pytest.raises(BackboneError, match=r"version '0\.8\.0'"):
        ask(server, tmp_path, engine=engine)
    assert server.state.count == 0


def test_another_server_that_comes_up_later_is_asked_nothing(server: StubServer, tmp_path: Path) -> None:
    """While ours was away requests were sent without a look at who answers: the other one's replies were taken."""
    engine = StubEngine([server.url])
    engine.recover_error = "nobody answers"

    def another() -> None:
        raise OtherServerError("says version '0.8.0'")

    def up() -> None:
        server.start()
        engine.recover_error, engine.on_recover = "", another

    async def run() -> list[Any]:
        enter()
        config = backbone_config(transport_retries=6, backoff_s=0.1, max_in_flight=4)
        async with open_backbone(engine, tmp_path, config=config) as backbone:
            model = backbone.bind("c1")
            server.stop_listening()
            asyncio.get_running_loop().call_later(0.15, up)
            asks = [model.ask(role(), {"text": str(number)}, key=str(number)) for number in range(4)]
            return await asyncio.gather(*asks, return_exceptions=True)

    errors = asyncio.run(run())
    assert all("says version '0.8.0'" in str(error) for error in errors)
    assert server.state.count == 0


def test_a_server_that_stays_dead_is_an_error_with_both_reasons(server: StubServer, tmp_path: Path) -> None:
    engine = StubEngine([server.url])
    engine.recover_error = "does not restart attached servers"
    server.stop_listening()
    with pytest.raises(
        BackboneError, match=r"(?s)failed 3 times.*Failed to connect.*does not restart attached servers"
    ):
        ask(server, tmp_path, engine=engine)


def test_requests_are_spread_over_endpoints(tmp_path: Path) -> None:
    with stub() as first, stub() as second:
        first.state.held, second.state.held = [], []

        async def answer_in_tens() -> None:
            """Which server is the faster would decide where a request goes: both answer when ten are there."""
            for there in range(10, 41, 10):
                while first.state.count + second.state.count < there:
                    await asyncio.sleep(0.001)
                first.answer_held()
                second.answer_held()

        async def run() -> list[CallRecord]:
            enter()
            records: list[CallRecord] = []
            engine = StubEngine([first.url, second.url])
            config = backbone_config(max_in_flight=10)
            async with open_backbone(engine, tmp_path, config=config, on_call=records.append) as backbone:
                models = [backbone.bind(f"c{number}") for number in range(10)]
                await asyncio.gather(
                    answer_in_tens(),
                    *(
                        model.ask(role(), {"text": f"{number} {turn}"}, key=str(turn))
                        for turn in range(4)
                        for number, model in enumerate(models)
                    ),
                )
            return records

        records = asyncio.run(run())
        assert first.state.count == second.state.count == 20
        assert first.state.most_in_flight == second.state.most_in_flight == 5
        assert {record.endpoint for record in records} == {"vllm-0", "vllm-1"}


def test_a_dead_endpoint_does_not_draw_every_resend(tmp_path: Path) -> None:
    with stub() as dead, stub(delay=0.01) as alive:
        dead.stop_listening()

        async def run() -> list[Reply]:
            enter()
            engine = StubEngine([dead.url, alive.url], name="openai")
            config = backbone_config(max_in_flight=20, transport_retries=1)
            async with open_backbone(engine, tmp_path, config=config) as backbone:
                model = backbone.bind("c1")
                return list(await asyncio.gather(*(model.ask(role(), {"text": str(n)}, key=str(n)) for n in range(20))))

        assert all(reply.value for reply in asyncio.run(run())) and alive.state.count == 20


@pytest.mark.parametrize(
    ("status", "retry_after", "pause"), [(429, "3", 3.0), (503, None, 0.0), (529, "soon", 0.0), (404, "3", None)]
)
def test_a_busy_server_says_how_long_to_wait(status: int, retry_after: str | None, pause: float | None) -> None:
    error = refusal(status, asked_pause({"Retry-After": retry_after} if retry_after else {}), StatedError("busy"))
    assert getattr(error, "pause", None) == pause and isinstance(error, BackboneError) == (pause is None)


def test_a_conversation_keeps_its_endpoint_while_both_are_equally_busy() -> None:
    one, two = Endpoint("http://a/v1", "m"), Endpoint("http://b/v1", "m")
    endpoints = Endpoints("vllm", [one, two])
    for affinity, home in (("c1", one), ("c2", two), ("c2", two), ("c1", one), ("c2", two)):
        assert endpoints.take(affinity) == home
        endpoints.give_back(home)
    assert endpoints.take("c1") == one
    assert endpoints.take("c1") == two  # the idle one, though it is not the home
    endpoints.replace([two])
    assert endpoints.take("c3") == two and endpoints.label(two) == "vllm-1"


KEY = "sk-secret-0123456789"


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    engine = StubEngine([server.url], name="openai", api_key_env="STUB_KEY")
    reply, record = ask(server, tmp_path, engine=engine)
    assert server.state.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr((reply, record))

    server.state.replies = lambda request: None
    server.fail("400")
    with pytest.raises(BackboneError) as raised:
        ask(server, tmp_path, engine=engine)
    assert KEY not in str(raised.value)
    monkeypatch.delenv("STUB_KEY")
    with pytest.raises(ConfigError, match="STUB_KEY"):
        ask(server, tmp_path, engine=engine)


def test_a_key_that_the_server_quotes_is_masked(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memsys.llm.transport import _without_key

    monkeypatch.setenv("STUB_KEY", KEY)
    endpoint = Endpoint(server.url, "m", "STUB_KEY")
    stated = stated_error({"error": {"message": f"Incorrect API key provided: {KEY}."}})
    assert stated is not None and _without_key(stated, endpoint).message == "Incorrect API key provided: ***."


def hosted(**changes: Any) -> OpenAIEngineConfig:
    settings = {"base_urls": ["https://api.example.org/v1/"], "model": "m-2025", "api_key_env": None}
    return OpenAIEngineConfig(**{**settings, **changes})


def test_hosted_endpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = "backbone.engine.base_urls"
    assert hosted().build().start(tmp_path) == [Endpoint("https://api.example.org/v1", "m-2025", None, setting)]
    assert hosted(api_key_env="STUB_KEY").build().fingerprint() == {"engine": "openai", "model": "m-2025"}
    monkeypatch.delenv("STUB_KEY", raising=False)
    with pytest.raises(ConfigError, match="environment variable STUB_KEY"):
        hosted(api_key_env="STUB_KEY").build().start(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_urls": []}, "base_urls"),
        (
            {"base_urls": "https://api.example.org/v1"},
            r"'backbone\.engine\.base_urls=\[https://api\.example\.org/v1\]'",
        ),
        (
            {"base_urls": ["https://r.openai.azure.com/openai/deployments/m?api-version=2"]},
            "at https://r.openai.azure.com/openai/v1, without api-version",
        ),
        ({"base_urls": ["api.example.org/v1"]}, "https://host/v1"),
        ({"base_urls": ["https://user:secret@example.org/v1"]}, "no user, password or query"),
        ({"model": ""}, "model"),
    ],
)
def test_hosted_settings_that_cannot_work(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        hosted(**changes)
    assert "secret" not in str(raised.value)


def test_a_thousand_in_flight(tmp_path: Path) -> None:
    with stub() as server:
        server.state.held = []

        async def run() -> None:
            enter()
            config = backbone_config(max_in_flight=1000, timeout_s=60)
            async with open_backbone(StubEngine([server.url]), tmp_path, config=config) as backbone:
                model = backbone.bind("c1")
                asks = [model.ask(role(), {"text": str(number)}, key=str(number)) for number in range(1000)]
                replies = asyncio.gather(*asks)
                while server.state.in_flight < 1000 and not replies.done():
                    await asyncio.sleep(0.01)
                server.answer_held()
                await replies

        asyncio.run(run())
        assert server.state.count == server.state.most_in_flight == 1000


def test_a_client_that_is_closed_cancels_what_is_on_its_way() -> None:
    came, ended = asyncio.Event(), asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await ended.wait()
        writer.close()

    async def run() -> list[bool]:
        client = HttpClient()
        async with await asyncio.start_server(never, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            request = HttpRequest("POST", url, {}, data=b"{}")
            asked = asyncio.create_task(client.exchange(request, timeout=30, largest=1000))
            await came.wait()
            await client.close()
            later = asyncio.create_task(client.exchange(request, timeout=30, largest=1000))
            await asyncio.wait([asked, later])
            ended.set()
            await asyncio.sleep(0)
        return [asked.cancelled(), later.cancelled()]

    assert asyncio.run(run()) == [True, True]


@pytest.mark.parametrize("by", ["cancelling the task", "closing the client"])
def test_the_connection_of_a_call_that_nobody_waits_for_is_closed(by: str) -> None:
    """Else its server goes on with it; llama.cpp, in this process, would never end."""
    came, closed = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        came.set()
        assert await reader.read() == b""
        closed.set()
        writer.close()

    async def run() -> None:
        client = HttpClient()
        async with await asyncio.start_server(listen, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            asked = asyncio.create_task(
                client.exchange(HttpRequest("POST", url, {}, data=b"{}"), timeout=30, largest=9)
            )
            await came.wait()
            if by == "closing the client":
                await client.close()
            else:
                asked.cancel()
            await asyncio.wait([asked])
            assert asked.cancelled()
            await asyncio.wait_for(closed.wait(), timeout=10)
        await client.close()

    asyncio.run(run())


def test_a_header_that_is_no_text_is_left_out(server: StubServer) -> None:
    server.state.bodies = lambda _: (200, {}, {"X-Odd": "caf\udce9", "X-Even": "1"})

    async def run() -> Answered:
        client = HttpClient()
        try:
            request = HttpRequest("POST", f"{server.url}/chat/completions", {}, data=b"{}")
            return await client.exchange(request, timeout=30, largest=1000)
        finally:
            await client.close()

    answered = asyncio.run(run())
    assert answered.headers["x-even"] == "1" and "x-odd" not in answered.headers and answered.body == b"{}"


def test_a_request_is_sent_once_where_its_kept_connection_closes() -> None:
    """libcurl would send it again over each of the other kept connections: a server can be paid six times."""
    came: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for kept in (b'{"n":1}', b'{"n":2}'):
            came.append((await reader.readuntil(b"}")).partition(b"\r\n\r\n")[2])
            if came[-1] != kept or kept == b'{"n":2}':
                break
            await asyncio.sleep(0.05)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async def run() -> None:
        client = HttpClient()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            first, second = (HttpRequest("POST", url, {}, data=data) for data in (b'{"n":1}', b'{"n":2}'))
            await asyncio.gather(*(client.exchange(first, timeout=30, largest=9) for _ in range(6)))
            with pytest.raises(ConnectionFailedError, match="closed the connection before its reply"):
                await client.exchange(second, timeout=30, largest=9)
            await client.close()
            await asyncio.sleep(0.05)

    asyncio.run(run())
    assert came.count(b'{"n":1}') == 6 and came.count(b'{"n":2}') == 1


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def post(url: str) -> HttpRequest:
    return HttpRequest("POST", url, {}, data=b"{}")


def exchanged(
    answer: Answering, request: Callable[[str], HttpRequest], context: ssl.SSLContext | None = None
) -> Answered:
    """Make one exchange with a server of ours, whose host and port the request is made of."""

    async def run() -> Answered:
        client = HttpClient()
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as listening:
            host, port = listening.sockets[0].getsockname()
            try:
                return await client.exchange(request(f"{host}:{port}"), timeout=30, largest=9)
            finally:
                await client.close()
                await asyncio.sleep(0.05)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", ExchangeError, "response 407"),
        (b"", ConnectionFailedError, "aborted"),
    ],
)
def test_a_proxy_that_refuses_is_no_lost_connection(reply: bytes, kind: type[Exception], words: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT model.example:443 ")
        writer.write(reply)
        writer.close()

    def through(server: str) -> HttpRequest:
        return HttpRequest("POST", "https://model.example", {}, f"http://bob:hunter2@{server}", b"{}")

    with pytest.raises(ExchangeError, match=words) as raised:
        exchanged(answer, through)
    assert raised.type is kind and "hunter2" not in str(raised.value)


def test_a_head_of_status_1xx_comes_before_the_one_that_counts() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
    reply = b"HTTP/1.1 200 OK: fine\r\nVia: HTTP/1.1 a\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n"
    body = b"1\r\n{\r\n1\r\n}\r\n0\r\nT: 1\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(hints + reply + body)
        writer.close()

    headers = {"via": "HTTP/1.1 a", "transfer-encoding": "chunked", "trailer": "T"}
    assert exchanged(answer, lambda server: post(f"http://{server}")) == Answered(200, headers, b"{}")


def certified(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate of a server, by which it is also its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    options = ["-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


def test_http_behind_an_https_address_is_named(tmp_path: Path) -> None:
    """There were OpenSSL's words alone."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as plain:
        Thread(target=plain.handle_request, daemon=True).start()
        engine = StubEngine([f"https://127.0.0.1:{plain.server_port}/v1"])
        said = r"does the server speak http, not https \(backbone\.engine\.base_urls\)\?; .* resumes"
        with pytest.raises(BackboneError, match=said), stub() as server:
            ask(server, tmp_path, engine=engine, transport_retries=0)


async def answer_braces(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"{}")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    writer.close()


def test_an_https_server_needs_a_known_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, context = certified(tmp_path, "IP:127.0.0.1")

    def ask() -> Answered:
        return exchanged(answer_braces, lambda server: post(f"https://{server}"), context)

    with pytest.raises(ConnectionFailedError, match=r"certificate.*SSL_CERT_FILE"):
        ask()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert ask() == Answered(200, {"content-length": "2"}, b"{}")


def test_a_reply_through_a_proxy_has_the_headers_of_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, context = certified(tmp_path, "DNS:model.example")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: a proxy\r\n\r\n")
        await writer.start_tls(context)
        await answer_braces(reader, writer)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    answered = exchanged(
        answer, lambda server: HttpRequest("POST", "https://model.example", {}, f"http://{server}", b"{}")
    )
    assert answered == Answered(200, {"content-length": "2"}, b"{}")


def test_the_proxy_of_an_address_is_looked_up_once(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes as long as half of a call."""
    looked_up: list[str] = []
    monkeypatch.setattr("memsys.llm.transport.proxy_of", lambda url: looked_up.append(url))

    async def run() -> None:
        enter()
        async with open_backbone(StubEngine([server.url], name="openai"), tmp_path) as backbone:
            for number in range(3):
                await backbone.bind("c1").ask(role(), {"text": str(number)}, key="t1")

    asyncio.run(run())
    assert looked_up == [f"{server.url}/chat/completions"]
