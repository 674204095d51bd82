"""The embedded engine with its real model: constrained replies, log-probabilities, the same text for the same seed."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from memsys.assets.catalog import asset_path
from memsys.errors import AssetError, BackboneError, ConfigError
from memsys.llm.backbone import Backbone
from memsys.llm.contract import Reply, Role
from memsys.llm.engines.contract import Engine
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig
from memsys.llm.gbnf import SPACINGS
from memsys.protocol import Parts
from tests.support.backbones import backbone_config, enter, role
from tests.support.composing import IN_PROCESS, memory_config
from tests.support.fakes import WordEmbedder
from tests.support.schema_model import SchemaModel
from tests.support.small import STAND_INS

TURNS = (
    "Ana: I went hiking in the Alps with my sister last week, and it rained all day.",
    "Ben: My band plays on Friday!",
    "Ana: Which songs will you play? I still remember the concert in June, the one by the lake.",
    "Ben: Mostly our own. I wrote two new ones about moving house.",
    "Ana: Good luck. I have to work late that day, we are short of nurses again.",
    "Ben: Then come to the next one, on the third of October in the old cinema.",
)

MODEL = "SmolLM2-135M-Instruct"


def engine_config(**changes: Any) -> LlamaCppEngineConfig:
    settings: dict[str, Any] = {
        "model_file": "smollm2_135m_gguf",
        "context_length": 1024,
        "parallel": 6,
        "batch_invariant": True,
        "threads": None,
        "port": 0,
    }
    return LlamaCppEngineConfig(**{**settings, **changes})


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        asset_path("smollm2_135m_gguf")
    except AssetError as error:
        pytest.skip(str(error))
    built = engine_config().build()
    yield built
    built.stop()


def ask_all(engine: Engine, folder: Path, turns: Sequence[str], *, at_once: int, mode: str = "chat") -> list[Reply]:
    async def run() -> list[Reply]:
        enter()
        config = backbone_config(
            engine=engine_config(),
            model=MODEL,
            context_length=1024,
            max_in_flight=at_once,
            timeout_s=300,
            prompt_mode=mode,
        )
        async with Backbone(config, engine, log_dir=folder, run_seed=3) as backbone:
            model = backbone.bind("c1")
            asks = [
                model.ask(role(max_tokens=24, malformed_retries=0, top_logprobs=2), {"text": turn}, key=turn)
                for turn in turns
            ]
            return list(await asyncio.gather(*asks))

    return asyncio.run(run())


@pytest.mark.real_model
@pytest.mark.parametrize("mode", ["chat", "completion"])
def test_replies_follow_the_schema_and_have_log_probabilities(engine: Engine, tmp_path: Path, mode: str) -> None:
    (reply,) = ask_all(engine, tmp_path, TURNS[:1], at_once=1, mode=mode)
    assert reply.text.lstrip().startswith("{") and '"keywords"' in reply.text
    assert reply.completion.prompt_tokens > 10 and 0 < reply.completion.completion_tokens <= 24
    tokens = reply.completion.logprobs
    assert len(tokens) == reply.completion.completion_tokens
    assert all(token.logprob <= 0 and len(token.top) == 2 for token in tokens)


@pytest.fixture
def schemas_of_presets(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, dict[str, Any]]]:
    """Each schema of a role of a preset, by its text, with the preset and the role that have it first."""
    made: list[Role] = []
    make = Role.__init__

    def note(self: Role, *arguments: Any, **settings: Any) -> None:
        make(self, *arguments, **settings)
        made.append(self)

    monkeypatch.setattr(Role, "__init__", note)
    for name, replacement in STAND_INS.items():
        monkeypatch.setattr(name, replacement)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for preset in IN_PROCESS:
        made.clear()
        config = memory_config(preset)
        config.build(Parts("c", SchemaModel(), WordEmbedder(), 0, gold_evidence={} if config.uses_gold else None))
        for each in made:
            if each.schema is not None:
                found.setdefault(json.dumps(each.schema), (f"{preset}, {each.name}", dict(each.schema)))
    return found


@pytest.mark.real_model
@pytest.mark.timeout(900)  # on a busy machine its threads wait for each other
def test_llama_cpp_takes_the_grammar_of_every_role_of_every_preset(
    engine: Engine, schemas_of_presets: dict[str, tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    """It refused those of ten small presets, which repeated long expressions up to hundreds of times."""
    assert len(schemas_of_presets) > 40
    (endpoint, *_) = engine.start(tmp_path)
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    refused = []
    with httpx.Client(base_url=endpoint.base_url, timeout=300) as client:
        for who, schema in schemas_of_presets.values():
            for way, spacing in SPACINGS.items():
                reply = client.post("chat/completions", json={**asked, "grammar": spacing.grammar(schema)})
                if reply.status_code != 200:
                    refused.append((who, way, reply.text[:200]))
    assert not refused


@pytest.mark.real_model
@pytest.mark.timeout(900)  # on a busy machine its threads wait for each other
def test_a_reply_depends_on_its_request_alone(engine: Engine, tmp_path: Path) -> None:
    """One at a time, all at once, again with warm prefixes, in another order, after a restart: the same texts."""
    alone = ask_all(engine, tmp_path, TURNS, at_once=1)
    texts = {turn: reply.text for turn, reply in zip(TURNS, alone, strict=True)}
    assert len(set(texts.values())) == len(TURNS)
    backwards = tuple(reversed(TURNS))
    for turns in (TURNS, backwards):
        together = ask_all(engine, tmp_path, turns, at_once=6)
        assert {turn: reply.text for turn, reply in zip(turns, together, strict=True)} == texts
    engine.stop()
    again = ask_all(engine, tmp_path, backwards, at_once=3)
    assert {turn: reply.text for turn, reply in zip(backwards, again, strict=True)} == texts


@pytest.mark.real_model
def test_tokens_context_and_recovery(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        enter()
        config = backbone_config(engine=engine_config(), model=MODEL, context_length=1024, timeout_s=300)
        async with Backbone(config, engine, log_dir=tmp_path, run_seed=0) as backbone:
            model = backbone.bind("c1")
            assert await model.count_tokens("hello world") == 2
            with pytest.raises(BackboneError, match=r"1203 tokens .* context of 1024 tokens"):
                await model.ask(role(), {"text": "word " * 1200}, key="long")
            engine.stop()  # as if it had died
            reply = await model.ask(role(max_tokens=8, malformed_retries=0), {"text": "x"}, key="x")
            assert reply.completion.completion_tokens > 0

    asyncio.run(run())
    assert "sha256" in engine.fingerprint() and str(tmp_path) not in repr(engine.fingerprint())


@pytest.mark.real_model
def test_an_engine_that_is_stopped_at_once_ends(tmp_path: Path) -> None:
    """It waited for ever where its server had not accepted a connection yet, as a run that is stopped at its start."""
    built = engine_config(parallel=1).build()
    for _ in range(2):
        assert built.start(tmp_path)
        built.stop()


@pytest.mark.real_model
def test_a_broken_model_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, but not really")
    with pytest.raises(BackboneError, match=r"llama\.cpp cannot serve broken\.gguf"):
        engine_config(model_file=str(tmp_path / "broken.gguf")).build().start(tmp_path / "logs")
    assert "broken.gguf" in (tmp_path / "logs" / "llamacpp.log").read_text()


def test_a_missing_model_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="memsys models"):
        engine_config(model_file="nowhere.gguf").build().start(tmp_path)


@pytest.mark.parametrize("changes", [{"parallel": 0}, {"context_length": 0}, {"threads": 0}, {"port": 70000}])
def test_settings_that_cannot_work(changes: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"backbone.engine.{next(iter(changes))}"):
        engine_config(**changes)


def test_the_number_of_sequences_is_a_runtime_field_only_if_it_cannot_move_a_reply() -> None:
    def names(**changes: Any) -> frozenset[str]:
        return backbone_config(
            engine=engine_config(**changes), model="SmolLM2-135M-Instruct", context_length=1024
        ).runtime_fields()

    assert "engine.parallel" in names() and "engine.threads" in names() and "max_in_flight" in names()
    assert "engine.parallel" not in names(batch_invariant=False)


class _Embedded:
    """What xllamacpp's server tells of itself."""

    def __init__(self, address: str) -> None:
        self.listening_address = address


def test_an_embedded_server_is_asked_past_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers is kept; one that is stopped is asked for its slots, as it answers that from its queue."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    engine: Any = engine_config(model_file=str(tmp_path / "model.gguf")).build()
    (tmp_path / "model.gguf").touch()
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.server_port}"
        engine._server = _Embedded(url)
        assert [endpoint.base_url for endpoint in engine.recover(tmp_path)] == [f"{url}/v1"]
        engine.stop()
        engine.stop()
        listening.shutdown()
    assert asked == ["/health", "/slots"]
