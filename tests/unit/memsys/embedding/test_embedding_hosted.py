"""The hosted embedder against a server of this process: order, norms, cuts, retries, errors."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsys.embedding.hosted import HostedEmbedder, HostedEmbedderConfig
from memsys.errors import BackboneError, BackboneUnusableError, ConfigError

CONF = Path(__file__).resolve().parents[4] / "conf"

#: Request number (from 0) and body -> status and reply.
Behaviour = Callable[[int, Mapping[str, Any]], tuple[int, Any]]


class Server(ThreadingHTTPServer):
    """Answers as its behaviour says and keeps what it was sent."""

    behaviour: Behaviour
    bodies: list[dict[str, Any]]
    keys: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        assert self.path == "/v1/embeddings"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.keys.append(self.headers.get("Authorization", ""))
        status, reply = self.server.behaviour(len(self.server.bodies) - 1, body)
        data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


def lengths(number: int, body: Mapping[str, Any]) -> tuple[int, Any]:
    """Vector of a text: its length and 1; in reverse order, as the protocol allows."""
    rows = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1]}


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.behaviour, running.bodies, running.keys = lengths, [], []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def embedder(server: Server, **changes: Any) -> HostedEmbedder:
    settings: dict[str, Any] = {
        "name": "hosted", "model": "m", "dimension": 2, "base_url": f"http://127.0.0.1:{server.server_port}/v1/",
        "api_key_env": None, "max_batch": 8, "max_chars": 10, "cache_entries": 100, "timeout_s": 5, "retries": 2,
        "backoff_s": 0.0,
    }  # fmt: skip
    return HostedEmbedderConfig(**{**settings, **changes}).build()


def test_rows_follow_the_texts_and_have_norm_one(server: Server) -> None:
    vectors = asyncio.run(embedder(server).embed(["aaa", "", "b"]))
    assert vectors.dtype == np.float32
    assert (vectors[:, 0] / vectors[:, 1]).tolist() == pytest.approx([3, 1, 1])  # the empty text was sent as a blank
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1, 1, 1])
    assert server.bodies == [{"model": "m", "input": [" ", "b", "aaa"]}]


def test_long_texts_are_cut_and_counted(server: Server) -> None:
    made = embedder(server)
    asyncio.run(made.embed(["x" * 11, "x" * 10]))
    assert sorted(map(len, server.bodies[0]["input"])) == [10, 10]
    assert made.statistics()["truncated"] == 1


def test_tokens_are_those_that_the_server_counts_and_are_given_once(server: Server) -> None:
    """Seven tokens for texts of three and one characters; the shorter one was sent first."""
    server.behaviour = lambda number, body: (200, {**lengths(number, body)[1], "usage": {"prompt_tokens": 7}})
    made = embedder(server)
    asyncio.run(made.embed(["aaa", "b"]))
    assert [made.paid(["aaa"]), made.paid(["aaa", "b"]), made.paid(["b"])] == [6, 1, 0]
    asyncio.run(made.embed(["aaa"]))
    assert made.paid(["aaa"]) == 0  # its vector was there already
    assert made.statistics()["tokens"] == 7


def test_a_server_that_counts_no_tokens_is_counted_by_characters(server: Server) -> None:
    made = embedder(server)
    asyncio.run(made.embed(["x" * 9]))
    assert made.paid(["x" * 9]) == 3


@pytest.mark.parametrize("first", [(500, "down"), (429, "slow down"), (200, "no JSON")])
def test_a_failure_on_the_way_is_sent_again(server: Server, first: tuple[int, Any]) -> None:
    server.behaviour = lambda number, body: first if number == 0 else lengths(number, body)
    assert asyncio.run(embedder(server).embed(["aa"])).shape == (1, 2)
    assert len(server.bodies) == 2


def test_a_server_that_keeps_failing_stops_the_conversation(server: Server) -> None:
    server.behaviour = lambda number, body: (503, "down")
    with pytest.raises(BackboneError, match=r"failed 3 times, last: status 503: down.*resumes"):
        asyncio.run(embedder(server).embed(["a"]))


def test_a_refusal_without_a_key_says_so(server: Server) -> None:
    server.behaviour = lambda number, body: (401, "who are you")
    with pytest.raises(BackboneError, match=r"who are you; no key was sent: embedder\.api_key_env=VARIABLE names"):
        asyncio.run(embedder(server).embed(["a"]))


def test_a_refusal_is_not_repeated_and_does_not_show_the_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "key-123")
    server.behaviour = lambda number, body: (401, "wrong key key-123")
    with pytest.raises(BackboneError, match=r"refused the request with status 401: wrong key \*\*\*"):
        asyncio.run(embedder(server, api_key_env="MY_KEY").embed(["a"]))
    assert server.keys == ["Bearer key-123"]


def test_vectors_without_an_index_are_in_the_order_of_the_texts(server: Server) -> None:
    rows = [{"embedding": [1.0, 0.0]}, {"embedding": [0.0, 1.0]}]
    server.behaviour = lambda number, body: (200, {"data": rows[: len(body["input"])]})
    assert asyncio.run(embedder(server, max_batch=2).embed(["a", "bb"])).shape == (2, 2)


def test_a_refused_embedding_names_the_embedders_setting(server: Server) -> None:
    """The words of a server were in the JSON of its reply, and nothing said what to do."""
    server.behaviour = lambda number, body: (404, {"error": {"message": "no model m", "code": "model_not_found"}})
    with pytest.raises(BackboneUnusableError, match=r"no model m .*see embedder\.model and embedder\.base_url"):
        asyncio.run(embedder(server).embed(["a"]))
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        ({"object": "list"}, BackboneError, "gave no embeddings: its reply is an object with object, where"),
        ([[1.0, 2.0]], BackboneError, "gave no embeddings: its reply is no object"),
        ({"error": {"message": "Insufficient credits", "code": 402}}, BackboneUnusableError, "credits; no credit"),
        (
            {"error": {"message": "no such field", "type": "invalid_request_error"}},
            BackboneError,
            "status 400: no such",
        ),
        ({"data": []}, BackboneError, "for 1 texts"),
        ({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}, ConfigError, r"dimension=2, but m has 3"),
        ({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, BackboneError, "zero"),
    ],
)
def test_what_is_no_vector_is_named(server: Server, reply: Any, error: type[Exception], message: str) -> None:
    server.behaviour = lambda number, body: (200, reply)
    with pytest.raises(error, match=message):
        asyncio.run(embedder(server).embed(["a"]))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ('{"data": [{"index": 0, "embedding": [1e999, 1]}]}', "zero or not finite"),
        ('{"data": [{"index": 0, "embedding": [-Infinity, 1]}]}', "zero or not finite"),
        ('{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "zero or not finite"),
        ('{"data": [{"index": 0, "embedding": [1e200, 1e200]}]}', "zero or not finite"),  # its norm is
        ('{"data": [{"index": 1, "embedding": [1, 1]}]}', "for other texts"),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused(server: Server, reply: str, message: str) -> None:
    server.behaviour = lambda number, body: (200, reply)
    with pytest.raises(BackboneError, match=message):
        asyncio.run(embedder(server).embed(["a"]))


def test_a_vector_given_twice_is_refused(server: Server) -> None:
    rows = [{"index": 0, "embedding": [1.0, 1.0]}, {"index": 0, "embedding": [1.0, 2.0]}]
    server.behaviour = lambda number, body: (200, {"data": rows})
    with pytest.raises(BackboneError, match="for other texts"):
        asyncio.run(embedder(server).embed(["a", "b"]))


def test_without_its_key_it_is_refused_before_anything_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"MY_KEY \(embedder.api_key_env\) is not set.*embedder=minilm"):
        embedder(server, api_key_env="MY_KEY")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "api.openai.com"}, "base_url"),
        ({"base_url": "https://me:secret@host/v1"}, "must hold no user, password or query"),
        ({"max_chars": 0}, "max_chars=0"),
        ({"timeout_s": 0}, "timeout_s=0"),
    ],
)
def test_bad_settings_are_refused(server: Server, changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        embedder(server, **changes)


@pytest.mark.parametrize(("name", "dimension"), [("text_embedding_3_small", 1536), ("nomic_embed_text", 768)])
def test_the_presets_spell_out_every_setting(name: str, dimension: int) -> None:
    import yaml

    settings = yaml.safe_load((CONF / "embedder" / f"{name}.yaml").read_text())
    assert settings.pop("_target_") == f"{HostedEmbedderConfig.__module__}.{HostedEmbedderConfig.__name__}"
    assert HostedEmbedderConfig(**settings).dimension == dimension
