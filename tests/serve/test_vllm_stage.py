"""vLLM really serves SmolLM2-135M-Instruct, on a GPU where there is one and else on the CPU, under the engine."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from memsys.errors import BackboneError
from memsys.llm.backbone import Backbone, BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.engines.contract import Endpoint
from memsys.llm.engines.process import running_members
from memsys.llm.engines.vllm import VllmEngineConfig
from memsys.llm.engines.vllm.launch import interpreter, local_model
from memsys.llm.engines.vllm.managed import ManagedVllm
from memsys.llm.prompt import Prompt
from memsys.llm.scope import CallScope, call_scope

pytestmark = [pytest.mark.serve, pytest.mark.timeout(900)]

CONF = Path(__file__).resolve().parents[2] / "conf"
SCHEMA = {
    "type": "object",
    "properties": {
        "keywords": {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 1, "maxItems": 3},
        "context": {"type": "string", "maxLength": 40},
    },
    "required": ["keywords", "context"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "note", "strict": True, "schema": SCHEMA}}


def _backbone_config() -> BackboneConfig:
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate

    with initialize_config_dir(str(CONF), version_base=None):
        config: BackboneConfig = instantiate(compose("backbone/smollm2_135m_vllm").backbone, _convert_="all")
    return config


@pytest.fixture(scope="module")
def engine() -> ManagedVllm:
    """The engine of the shipped YAML; skips where there is no serving environment."""
    config = _backbone_config().engine
    assert isinstance(config, VllmEngineConfig)
    try:
        interpreter(config)
        local_model(config.model or "")
    except BackboneError as error:
        pytest.skip(str(error))
    return ManagedVllm(config)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vllm")


@pytest.fixture(scope="module")
def endpoint(engine: ManagedVllm, log_dir: Path) -> Iterator[Endpoint]:
    """A served model, one start for all tests."""
    yield engine.start(log_dir)[0]
    engine.stop()


def post(endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> Any:
    reply = httpx.post(f"{endpoint.base_url}{path}", json={"model": endpoint.model, **body}, timeout=300)
    assert reply.is_success, reply.text
    return reply.json()


def chat(endpoint: Endpoint, number: int, **changes: Any) -> Any:
    """A note construction as the client asks for it; each number has a prompt and a seed of its own."""
    text = f"On day {number} Ann planted {number + 3} trees by the lake and met Ben, who was painting."
    body = {
        "messages": [{"role": "user", "content": f"Write keywords and a context for this message as JSON: {text}"}],
        "temperature": 0.7,
        "seed": 100 + number,
        "max_tokens": 120,
        "response_format": _FORMAT,
        "logprobs": True,
        "top_logprobs": 3,
    }
    return post(endpoint, "/chat/completions", {**body, **changes})["choices"][0]


def server_pid(endpoint: Endpoint) -> int:
    """The process that listens on the endpoint's port."""
    port = endpoint.base_url.rsplit(":", 1)[1].removesuffix("/v1")
    lines = _command_lines()
    (found,) = [pid for pid, line in lines if f"--port\0{port}\0" in line and "guard.py" not in line]
    return found


def group_of(pid: int) -> list[int]:
    """All processes of a process's group: guard, server, engine and workers."""
    group = _group(pid)
    return [other for other, _ in _command_lines() if _group(other) == group]


def _command_lines() -> Sequence[tuple[int, str]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found.append((int(folder.name), (folder / "cmdline").read_text()))
            except OSError:
                continue
    return found


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def test_fingerprint_of_what_is_served(engine: ManagedVllm, endpoint: Endpoint) -> None:
    told = engine.fingerprint()
    assert told["model"] == endpoint.model == "SmolLM2-135M-Instruct-hf"
    assert told["version"]
    assert {len(digest) for digest in told["files"].values()} == {64}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= set(told["files"])


def test_chat_follows_the_schema_and_tells_logprobs(endpoint: Endpoint) -> None:
    choice = chat(endpoint, 1)
    assert choice["finish_reason"] == "stop"
    jsonschema.validate(json.loads(choice["message"]["content"]), SCHEMA)
    tokens = choice["logprobs"]["content"]
    assert "".join(token["token"] for token in tokens).startswith("{")
    assert all(token["logprob"] <= 0 and len(token["top_logprobs"]) == 3 for token in tokens)


def test_completion_follows_the_schema_and_tells_logprobs(endpoint: Endpoint) -> None:
    body = {"prompt": "A note as JSON:\n", "max_tokens": 120, "temperature": 0, "seed": 1, "logprobs": 2}
    choice = post(endpoint, "/completions", {**body, "response_format": _FORMAT})["choices"][0]
    jsonschema.validate(json.loads(choice["text"]), SCHEMA)
    assert len(choice["logprobs"]["token_logprobs"]) == len(choice["logprobs"]["tokens"]) > 0


def test_tokens_are_counted(endpoint: Endpoint) -> None:
    root = Endpoint(endpoint.base_url.removesuffix("/v1"), endpoint.model)
    # SmolLM2 splits numbers into digits: "Hello", " ", "2", "0", "2", "3"
    assert post(root, "/tokenize", {"prompt": "Hello 2023", "add_special_tokens": False})["count"] == 6


def test_seeded_replies_do_not_depend_on_the_batch(endpoint: Endpoint) -> None:
    alone = [chat(endpoint, number)["message"]["content"] for number in range(3)]
    with ThreadPoolExecutor(24) as pool:
        together = list(pool.map(lambda number: chat(endpoint, number)["message"]["content"], range(24)))
    assert together[:3] == alone
    assert len(set(together)) > 3


def test_long_seeded_prompts_at_once_do_not_stop_the_server(endpoint: Endpoint, engine: ManagedVllm) -> None:
    text = "the lake and the trees " * 360
    body = {"prompt": text, "max_tokens": 4, "temperature": 0.7}
    with ThreadPoolExecutor(5) as pool:
        replies = list(pool.map(lambda seed: post(endpoint, "/completions", {**body, "seed": seed}), range(5)))
    assert all(reply["usage"]["prompt_tokens"] > 1700 for reply in replies)
    assert engine.restarts == 0


def test_killed_server_comes_back_and_answers_as_before(
    endpoint: Endpoint, engine: ManagedVllm, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = chat(endpoint, 2)["message"]["content"]
    server = server_pid(endpoint)
    group, old = _group(server), group_of(server)
    assert len(old) > 2
    os.kill(server, signal.SIGKILL)
    with pytest.raises(httpx.HTTPError):
        chat(endpoint, 2)
    with caplog.at_level(logging.WARNING):
        (again,) = engine.recover(log_dir)
    assert engine.restarts == 1
    assert "restart 1 of 3" in caplog.text
    assert chat(again, 2)["message"]["content"] == before
    assert not running_members(group), "processes of the killed server's group live on"
    assert engine.recover(log_dir) == (again,)


def test_client_rides_out_a_killed_server(engine: ManagedVllm, log_dir: Path) -> None:
    role = Role(
        name="analyse",
        prompt=Prompt("Write keywords and a context for this message as JSON: Ann planted $n trees.", "analyse", "x"),
        temperature=0.7,
        max_tokens=120,
        schema=SCHEMA,
    )

    async def ask_all(fatal: bool) -> list[str]:
        async with Backbone(_backbone_config(), engine, log_dir=log_dir, run_seed=1) as backbone:
            call_scope.set(CallScope("prepare"))
            model = backbone.bind("c")
            server = server_pid(engine.start(log_dir)[0])
            if fatal:
                # A stopped server accepts requests and answers none: all of them are under way when it is killed.
                os.kill(server, signal.SIGSTOP)
            asked = [asyncio.create_task(model.ask(role, {"n": str(n)}, key=str(n))) for n in range(12)]
            if fatal:
                await asyncio.sleep(1.0)
                os.kill(server, signal.SIGKILL)
            return [reply.text for reply in await asyncio.gather(*asked)]

    undisturbed = asyncio.run(ask_all(fatal=False))
    restarts = engine.restarts
    assert asyncio.run(ask_all(fatal=True)) == undisturbed
    assert engine.restarts == restarts + 1


def test_stop_leaves_no_process(engine: ManagedVllm, log_dir: Path) -> None:
    (endpoint,) = engine.start(log_dir)
    server = server_pid(endpoint)
    group = _group(server)
    assert len(running_members(group)) > 2
    engine.stop()
    assert running_members(group) == set()
