"""llama.cpp servers that run elsewhere: what they are asked, and which of them a run goes on with."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memsys.errors import BackboneError, ConfigError
from memsys.llm.engines.llamacpp_attached import AttachedLlamaCppConfig

KEY = "swordfish-0815"
PROPERTIES = {"model_path": "/models/Qwen3-0.6B-Q8_0.gguf", "total_slots": 4, "build_info": "b7000"}
#: What some servers say otherwise, by address.
CHANGES: dict[str, dict[str, object]] = {}


class LlamaServer(BaseHTTPRequestHandler):
    """What llama-server answers when it was started with a key: its health to everybody, the rest to those with it."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == f"Bearer {KEY}"
        self.send_response(200 if known or self.path == "/health" else 401)
        self.end_headers()
        self.wfile.write(json.dumps(PROPERTIES | CHANGES.get(self.headers["Host"], {})).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ThreadingHTTPServer]]:
    monkeypatch.setenv("LLAMA_KEY", KEY)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    made = [ThreadingHTTPServer(("127.0.0.1", 0), LlamaServer) for _ in range(2)]
    for server in made:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    for server in made:
        server.shutdown()
        server.server_close()


def urls(servers: list[ThreadingHTTPServer]) -> list[str]:
    return [f"http://127.0.0.1:{server.server_port}" for server in servers]


def test_servers_with_a_key_are_asked_with_it_and_past_proxies(
    servers: list[ThreadingHTTPServer], tmp_path: Path
) -> None:
    engine = AttachedLlamaCppConfig(urls=urls(servers), api_key_env="LLAMA_KEY").build()
    found = engine.start(tmp_path)
    assert [endpoint.base_url for endpoint in found] == [f"{url}/v1" for url in urls(servers)]
    assert {endpoint.model for endpoint in found} == {"Qwen3-0.6B-Q8_0"}
    assert engine.fingerprint()["parallel"] == 4
    with pytest.raises(BackboneError, match="401"):
        AttachedLlamaCppConfig(urls=urls(servers), api_key_env=None).build().start(tmp_path)
    with pytest.raises(ConfigError, match=r"NO_SUCH_KEY .* is not set"):
        AttachedLlamaCppConfig(urls=urls(servers), api_key_env="NO_SUCH_KEY").build().start(tmp_path)


def test_a_run_goes_on_with_the_servers_that_live(servers: list[ThreadingHTTPServer], tmp_path: Path) -> None:
    engine = AttachedLlamaCppConfig(urls=urls(servers), api_key_env="LLAMA_KEY").build()
    first, second = engine.start(tmp_path)
    servers[0].shutdown()
    servers[0].server_close()
    assert engine.recover(tmp_path) == [second] != [first]
    servers[1].shutdown()
    servers[1].server_close()
    with pytest.raises(BackboneError, match="does not restart attached servers"):
        engine.recover(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"build_info": "b6000"}, "build 'b6000', .* reported 'b7000'"),
        ({"total_slots": 1}, "parallel 1, .* reported 4"),
        ({"model_path": "/models/other.gguf"}, "file 'other', .* reported 'Qwen3-0.6B-Q8_0'"),
    ],
)
def test_servers_that_are_unlike_are_refused(
    servers: list[ThreadingHTTPServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, object],
    message: str,
) -> None:
    """Of build and slots the fingerprint had those of the last, by the order of the addresses."""
    engine = AttachedLlamaCppConfig(urls=urls(servers), api_key_env="LLAMA_KEY").build()
    engine.start(tmp_path)
    begun = engine.fingerprint()
    monkeypatch.setitem(CHANGES, f"127.0.0.1:{servers[1].server_port}", change)
    expected = f"{urls(servers)[1]} reports {message}; attach servers"
    with pytest.raises(BackboneError, match=expected):
        engine.recover(tmp_path)
    assert engine.fingerprint() == begun
    with pytest.raises(BackboneError, match=expected):
        AttachedLlamaCppConfig(urls=urls(servers), api_key_env="LLAMA_KEY").build().start(tmp_path)
