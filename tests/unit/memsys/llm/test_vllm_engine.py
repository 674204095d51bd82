"""The vLLM engine against a fake server: start, failure, crash, restart, clean end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from memsys.errors import BackboneError, ConfigError
from memsys.llm.engines.vllm import VllmEngineConfig
from memsys.llm.engines.vllm.launch import INTERPRETER_VARIABLE, command, environment, explain, local_model
from memsys.llm.engines.vllm.managed import ManagedVllm

#: Stands in for the interpreter: understands the server's command line, answers /health, /version and /v1/models, and
#: has a child of its own (one that ignores SIGTERM if it is stubborn). FAKE_MODE picks how it behaves.
_FAKE = """#!{python}
import http.server, json, os, subprocess, sys, time
option = dict(zip(sys.argv, sys.argv[1:]))
mode = os.environ.get("FAKE_MODE", "good")
runs = os.environ["FAKE_RUNS"]
with open(runs, "a") as stream:
    stream.write("run\\n")
count = len(open(runs).readlines())
if mode == "broken" or (mode == "broken_later" and count > 1):
    print("ValueError: this model cannot be served")
    print("nanobind: leaked 4 instances!")
    sys.exit(3)
if mode == "port_taken_once" and count == 1:
    sys.exit("[Errno 98] address already in use")
if mode == "slow":
    time.sleep(1.0)
if mode == "hangs":
    time.sleep(60)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
if mode != "stubborn":
    child = "import time; time.sleep(60)"
worker = subprocess.Popen([sys.executable, "-S", "-E", "-c", child])
with open(runs + ".pids", "w") as stream:
    json.dump([os.getpid(), worker.pid], stream)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = {{
            "/health": "",
            "/version": json.dumps({{"version": "0.32.0"}}),
            "/v1/models": json.dumps({{"data": [{{"id": option["--served-model-name"]}}]}}),
        }}
        self.send_response(200 if self.path in known else 404)
        self.end_headers()
        self.wfile.write(known.get(self.path, "").encode())

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((option["--host"], int(option["--port"])), Handler).serve_forever()
"""


def config(**changes: Any) -> VllmEngineConfig:
    """A managed server with the settings of a test."""
    settings: dict[str, Any] = {
        "mode": "managed",
        "urls": (),
        "api_key_env": None,
        "model": "owner/tiny",
        "revision": None,
        "interpreter": None,
        "max_model_len": 256,
        "dtype": "float32",
        "tensor_parallel_size": 1,
        "data_parallel_size": 1,
        "replicas": 1,
        "host": "127.0.0.1",
        "gpu_memory_utilization": None,
        "max_num_seqs": 4,
        "max_num_batched_tokens": None,
        "chunked_prefill": None,
        "prefix_caching": None,
        "enforce_eager": True,
        "batch_invariant": False,
        "seed": 0,
        "cpu_kvcache_space_gb": None,
        "cpu_reserved_cores": None,
        "extra_args": (),
        "port": 0,
        "start_timeout_s": 20.0,
        "max_restarts": 1,
    }
    return VllmEngineConfig(**settings | changes)


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake interpreter, found through the environment variable."""
    path = tmp_path / "python"
    path.write_text(_FAKE.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("FAKE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv(INTERPRETER_VARIABLE, str(path))
    return path


@pytest.fixture
def engine(interpreter: Path) -> Iterator[ManagedVllm]:
    """An engine that is stopped whatever happens."""
    made = ManagedVllm(config())
    yield made
    made.stop()


def server_pids(tmp_path: Path) -> list[int]:
    pids: list[int] = json.loads((tmp_path / "runs.pids").read_text())
    return pids


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_managed_server_starts_once_and_ends_with_all_its_processes(engine: ManagedVllm, tmp_path: Path) -> None:
    (endpoint,) = engine.start(tmp_path)
    assert engine.start(tmp_path) == (endpoint,)
    assert endpoint.model == "owner/tiny"
    assert endpoint.base_url.startswith("http://127.0.0.1:") and endpoint.base_url.endswith("/v1")
    assert (tmp_path / "runs").read_text() == "run\n"
    pids = server_pids(tmp_path)
    assert all(map(is_alive, pids))
    engine.stop()
    engine.stop()
    assert not any(map(is_alive, pids))


def test_fingerprint_tells_version_model_and_flags_and_no_path(engine: ManagedVllm, tmp_path: Path) -> None:
    engine.start(tmp_path)
    told = engine.fingerprint()
    assert told["version"] == "0.32.0"
    assert told["model"] == "owner/tiny"
    assert told["dtype"] == "float32"
    assert str(tmp_path) not in json.dumps(told)


def test_fingerprint_of_a_hub_model_holds_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    refs = tmp_path / "models--owner--tiny" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("c0ffee")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert config().build().fingerprint()["weights"] == {"revision": "c0ffee"}
    assert config(revision="v2").build().fingerprint()["weights"] == {"revision": "v2"}


def _told_by_files(path: Path, changes: Callable[[], VllmEngineConfig]) -> bool:
    """Whether the fingerprint says that a file, which is written again, has changed."""
    before = changes().build().fingerprint()
    path.write_text("other")
    return before != changes().build().fingerprint()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("tokenizer.json", True),
        ("tokenizer_config.json", True),
        ("chat_template.jinja", True),
        ("generation_config.json", True),
        ("config.json", True),
        ("merges.txt", True),
        ("pytorch_model.bin", True),
        ("additional_chat_templates/tools.jinja", True),
        ("README.md", False),
        (".cache/huggingface/download/config.json.metadata", False),
    ],
)
def test_fingerprint_of_a_local_model_tells_what_the_server_reads(tmp_path: Path, name: str, counts: bool) -> None:
    """Replies to another chat template were taken from the cache."""
    folder = tmp_path / "tiny-hf"
    (folder / name).parent.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / name).write_text("one")
    assert _told_by_files(folder / name, lambda: config(model=str(folder))) is counts


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        (("--chat-template", "{folder}/chat.jinja"), True),
        (("--chat-template={folder}/chat.jinja",), True),
        (("--tokenizer", "{folder}/tokenizer"), True),
        (("--lora-modules", "mine={folder}/tokenizer"), True),
        (("--download-dir", "{folder}"), False),
        (("--chat-template", "x" * 5000), False),
    ],
)
def test_fingerprint_tells_the_files_that_arguments_name(
    tmp_path: Path, arguments: tuple[str, ...], counts: bool
) -> None:
    (tmp_path / "tokenizer").mkdir()
    for name in ("chat.jinja", "tokenizer/tokenizer_config.json"):
        (tmp_path / name).write_text("one")
    changed = tmp_path / ("chat.jinja" if "chat.jinja" in arguments[-1] else "tokenizer/tokenizer_config.json")
    given = tuple(argument.format(folder=tmp_path) for argument in arguments)
    assert _told_by_files(changed, lambda: config(extra_args=given)) is counts
    assert "argument_files" not in config().build().fingerprint()


def test_missing_environment_names_the_make_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER_VARIABLE, raising=False)
    with pytest.raises(BackboneError, match="make serve-env"):
        config(interpreter=str(tmp_path / "nothing")).build().start(tmp_path)


def test_server_that_ends_at_once_is_told_early_with_its_first_error(
    interpreter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "broken")
    began = time.monotonic()
    with pytest.raises(BackboneError, match="status 3") as failure:
        config().build().start(tmp_path)
    assert time.monotonic() - began < 5
    assert "first error: ValueError: this model cannot be served" in str(failure.value)
    assert "nanobind" not in str(failure.value)


@pytest.mark.parametrize(
    "error",
    [
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/Qwen/Qwen3-0.6B",
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the "
        "specified revision on the local disk and outgoing traffic has been disabled.",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the "
        "cached files.",
    ],
)
def test_a_model_that_must_be_fetched_is_said_offline_too(error: str, tmp_path: Path) -> None:
    """The warning about open files, which quotes an error, was shown as the first one."""
    log = tmp_path / "vllm.log"
    log.write_text(
        "(APIServer pid=7) WARNING 11-28 08:00:00 [utils.py:12] Found ulimit of 1024 and failed to automatically "
        "increase. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.\n"
        "WARNING 11-28 08:00:00 [utils.py:12] fd limit errors like `OSError: [Errno 24] Too many open files`.\n"
        f"(APIServer pid=7) {error}\n"
    )
    told = explain(log, 0)
    assert "download it first" in told and "HF_HUB_OFFLINE" in told
    assert f"first error: (APIServer pid=7) {error}\n" in told


def test_server_that_hangs_is_ended_after_the_timeout(
    interpreter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "hangs")
    with pytest.raises(BackboneError, match="start_timeout_s"):
        config(start_timeout_s=1.0).build().start(tmp_path)


def test_a_start_that_is_under_way_can_be_stopped(
    interpreter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "hangs")
    engine, errors, began = config(start_timeout_s=60.0).build(), list[BaseException](), time.monotonic()

    def start() -> None:
        try:
            engine.start(tmp_path)
        except BackboneError as error:
            errors.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    while not (tmp_path / "runs").exists():
        time.sleep(0.05)
    engine.stop()
    starting.join()
    assert str(errors[0]) == "stopped while vLLM was starting" and time.monotonic() - began < 20
    monkeypatch.setenv("FAKE_MODE", "good")
    try:
        assert engine.start(tmp_path)
    finally:
        engine.stop()


def test_slow_start_is_waited_for(engine: ManagedVllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "slow")
    assert engine.start(tmp_path)


def test_another_port_is_tried_when_the_server_loses_the_race_for_its_own(
    engine: ManagedVllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "port_taken_once")
    assert engine.start(tmp_path)
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_a_wanted_port_that_is_taken_is_replaced(interpreter: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        engine = config(port=port).build()
        try:
            (endpoint,) = engine.start(tmp_path)
        finally:
            engine.stop()
    assert f":{port}/" not in endpoint.base_url


def test_recover_leaves_a_living_server_alone(engine: ManagedVllm, tmp_path: Path) -> None:
    endpoints = engine.start(tmp_path)
    assert engine.recover(tmp_path) == endpoints
    assert engine.restarts == 0


def test_recover_restarts_a_killed_server_and_gives_up_after_max_restarts(engine: ManagedVllm, tmp_path: Path) -> None:
    engine.start(tmp_path)
    first = server_pids(tmp_path)
    os.kill(first[0], signal.SIGKILL)
    (endpoint,) = engine.recover(tmp_path)
    assert engine.restarts == 1
    second = server_pids(tmp_path)
    assert second[0] != first[0] and is_alive(second[0])
    assert eventually(lambda: not is_alive(first[1])), "the killed server's worker lives on"
    os.kill(second[0], signal.SIGKILL)
    assert eventually(lambda: not is_alive(second[0]))
    with pytest.raises(BackboneError, match="died 2 times"):
        engine.recover(tmp_path)
    assert endpoint.model == "owner/tiny"


def test_nothing_is_left_when_the_guard_itself_is_killed(
    engine: ManagedVllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "stubborn")
    engine.start(tmp_path)
    server, worker = server_pids(tmp_path)
    os.kill(os.getpgid(server), signal.SIGKILL)
    assert eventually(lambda: not is_alive(server))
    assert engine.recover(tmp_path)
    assert not is_alive(worker)


def test_recover_tells_why_the_server_does_not_come_back(
    engine: ManagedVllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "broken_later")
    engine.start(tmp_path)
    os.kill(server_pids(tmp_path)[0], signal.SIGKILL)
    with pytest.raises(BackboneError, match="cannot be served"):
        engine.recover(tmp_path)


_PARENT = """
import sys, time
from pathlib import Path
from tests.unit.memsys.llm.test_vllm_engine import config
config().build().start(Path(sys.argv[1]))
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_server_behind(
    interpreter: Path, tmp_path: Path, fatal: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MODE", "stubborn")
    root = Path(__file__).resolve().parents[4]
    line = [sys.executable, "-c", _PARENT, str(tmp_path)]
    with subprocess.Popen(line, cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        pids = server_pids(tmp_path)
        assert all(map(is_alive, pids))
        parent.send_signal(fatal)
        parent.wait()
    assert eventually(lambda: not is_alive(pids[0]))
    assert eventually(lambda: not is_alive(pids[1]), 25), "the child that ignores SIGTERM lives on"


def test_attached_servers_that_are_declared_unlike_do_not_share_replies() -> None:
    twins = [config(mode="attached", urls=("http://a:1",), dtype=dtype).build() for dtype in ("float32", "bfloat16")]
    assert twins[0].fingerprint() != twins[1].fingerprint()
    assert twins[0].fingerprint()["declared"]["dtype"] == "float32"


def test_attached_spreads_over_all_servers_and_goes_on_with_the_living(interpreter: Path, tmp_path: Path) -> None:
    servers = [config().build() for _ in range(2)]
    urls = [server.start(tmp_path)[0].base_url for server in servers]
    try:
        attached = config(mode="attached", urls=(urls[0], urls[1].removesuffix("/v1") + "/"), model=None).build()
        assert [endpoint.base_url for endpoint in attached.start(tmp_path)] == urls
        assert attached.fingerprint()["model"] == "owner/tiny"
        servers[0].stop()
        assert [endpoint.base_url for endpoint in attached.recover(tmp_path)] == urls[1:]
        servers[1].stop()
        with pytest.raises(BackboneError, match="does not restart attached servers"):
            attached.recover(tmp_path)
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two servers that answer, by address; a test says which version each has."""
    told = {"http://a:1": "0.11.0", "http://b:1": "0.11.0"}
    module = "memsys.llm.engines.vllm.attached"
    for healthy in (f"{module}.is_healthy", "memsys.llm.engines.servers.is_healthy"):
        monkeypatch.setattr(healthy, lambda root: root in told)
    monkeypatch.setattr(f"{module}.server_version", told.__getitem__)
    monkeypatch.setattr(f"{module}.served_models", lambda root, key: [{"http://c:1": "other"}.get(root, "m")])
    return told


def test_attached_servers_of_two_versions_are_refused(versions: dict[str, str], tmp_path: Path) -> None:
    """The fingerprint had the version of the last one, by the order of the addresses."""
    urls = tuple(versions)
    twins = [config(mode="attached", urls=order, model="m").build() for order in (urls, urls[::-1])]
    for engine in twins:
        engine.start(tmp_path)
    assert twins[0].fingerprint() == twins[1].fingerprint() and twins[0].fingerprint()["version"] == "0.11.0"
    versions["http://b:1"] = "0.8.0"
    unlike = r"http://b:1 reports version '0\.8\.0', http://a:1 reported '0\.11\.0'; attach servers.*engine\.urls"
    with pytest.raises(BackboneError, match=unlike):
        config(mode="attached", urls=urls, model="m").build().start(tmp_path)


def test_attached_servers_are_asked_again_after_a_failure(versions: dict[str, str], tmp_path: Path) -> None:
    engine = config(mode="attached", urls=("http://a:1", "http://b:1/v1"), model="m").build()
    assert engine.start(tmp_path) == engine.recover(tmp_path)
    begun = engine.fingerprint()
    versions["http://b:1"] = "0.8.0"
    with pytest.raises(BackboneError, match="http://b:1 reports version"):
        engine.recover(tmp_path)
    del versions["http://a:1"]
    with pytest.raises(BackboneError, match="http://b:1 reports version"):
        engine.recover(tmp_path)
    assert engine.fingerprint() == begun


def test_attached_servers_of_two_models_are_refused(versions: dict[str, str], tmp_path: Path) -> None:
    """Where the settings name none, each served its own."""
    versions["http://c:1"] = "0.11.0"
    with pytest.raises(BackboneError, match="http://c:1 reports model 'other', http://a:1 reported 'm'"):
        config(mode="attached", urls=("http://a:1", "http://c:1"), model=None).build().start(tmp_path)


def test_attached_refuses_a_server_with_another_model(interpreter: Path, tmp_path: Path) -> None:
    server = config().build()
    try:
        url = server.start(tmp_path)[0].base_url
        with pytest.raises(BackboneError, match="serves owner/tiny"):
            config(mode="attached", urls=(url,), model="owner/other").build().start(tmp_path)
    finally:
        server.stop()


@pytest.mark.parametrize("content", [b"<html>", b"[]", b"{}"])
def test_attached_to_another_program_is_one_clear_error(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page without the field ended in a traceback."""

    def answers(client: object, method: str, url: str, limit: int, **_: object) -> httpx.Response:
        return httpx.Response(200, content=content, request=httpx.Request(method, url))

    monkeypatch.setattr("memsys.llm.engines.servers.exchange", answers)
    engine = config(mode="attached", urls=("http://127.0.0.1:9",)).build()
    with pytest.raises(BackboneError, match="does not tell its version"):
        engine.start(tmp_path)
    monkeypatch.setattr("memsys.llm.engines.vllm.attached.server_version", lambda root: "0.32.0")
    with pytest.raises(BackboneError, match="does not list its models"):
        engine.start(tmp_path)


def test_attached_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="no healthy vLLM server"):
        config(mode="attached", urls=("http://127.0.0.1:9",)).build().start(tmp_path)


def test_command_line_holds_the_settings(interpreter: Path) -> None:
    line = command(config(chunked_prefill=False, revision="abc", extra_args=("--x", "1")), "owner/tiny", 80)
    options = dict(pairwise(line))
    assert options["--model"] == options["--served-model-name"] == "owner/tiny"
    assert (options["--revision"], options["--port"], options["--generation-config"]) == ("abc", "80", "vllm")
    assert "--no-enable-chunked-prefill" in line and "--enforce-eager" in line
    assert "--enable-prefix-caching" not in line and "--max-num-batched-tokens" not in line
    assert line[-2:] == ["--x", "1"]


def test_local_model_is_served_offline_under_its_folder_name(
    interpreter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tiny-hf"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    settings = config(model=str(folder), batch_invariant=True, cpu_kvcache_space_gb=2, cpu_reserved_cores=0)
    line = command(settings, str(folder), 80)
    assert dict(pairwise(line))["--served-model-name"] == "tiny-hf"
    monkeypatch.setenv("VLLM_API_KEY", "of a server elsewhere")
    variables = environment(settings, str(folder))
    assert "VLLM_API_KEY" not in variables  # ours would refuse every call
    assert environment(config(model=str(folder), host="0.0.0.0"), str(folder))["VLLM_API_KEY"]
    assert variables["HF_HUB_OFFLINE"] == variables["VLLM_BATCH_INVARIANT"] == "1"
    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert variables["VLLM_CPU_NUM_OF_RESERVED_CPU"] == "0"
    assert settings.build().fingerprint()["files"] == {
        "config.json": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "model.safetensors": "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c",
    }


def test_server_environment_has_nothing_of_our_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    variables = environment(config(), "owner/tiny")
    assert "PYTHONPATH" not in variables
    assert "HF_HUB_OFFLINE" not in variables or "HF_HUB_OFFLINE" in os.environ


def test_server_on_a_cpu_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "4096")
    variables = environment(config(cpu_kvcache_space_gb=2), "owner/tiny")
    assert variables["MALLOC_MMAP_THRESHOLD_"] == "33554432"
    assert variables["MALLOC_TRIM_THRESHOLD_"] == "4096", "what the user has set stays"
    assert "MALLOC_MMAP_THRESHOLD_" not in environment(config(), "owner/tiny"), "a GPU's server is left alone"


def test_server_on_a_cpu_computes_with_intels_openmp_where_its_environment_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    served = config(cpu_kvcache_space_gb=2, interpreter=str(tmp_path / "bin" / "python"))
    assert "LD_PRELOAD" not in environment(served, "owner/tiny")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libiomp5.so").touch()
    assert environment(served, "owner/tiny")["LD_PRELOAD"] == str(tmp_path / "lib" / "libiomp5.so")
    assert "LD_PRELOAD" not in environment(replace(served, cpu_kvcache_space_gb=None), "owner/tiny"), "a GPU's server"
    for name in ("with blank", "with:colon"):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib" / "libiomp5.so").touch()
        elsewhere = replace(served, interpreter=str(tmp_path / name / "bin" / "python"))
        assert "LD_PRELOAD" not in environment(elsewhere, "owner/tiny"), "the loader would split the path"
    monkeypatch.setenv("LD_PRELOAD", "/the/users.so")
    assert environment(served, "owner/tiny")["LD_PRELOAD"] == "/the/users.so"


def test_model_that_is_neither_folder_nor_hub_id() -> None:
    with pytest.raises(BackboneError, match="no hub id"):
        local_model("nowhere")


def test_known_failures_get_a_hint(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_text("earlier start: out of memory\n")
    start = log.stat().st_size
    with log.open("a") as stream:
        stream.write("RuntimeError: CPU Generator does not use offset\n")
    told = explain(log, start)
    assert "chunked_prefill=false" in told
    assert "earlier start" not in told
    assert "gpu_memory_utilization" in explain(log, 0) or "chunked_prefill" in explain(log, 0)
    log.write_text("ModuleNotFoundError: No module named 'flashinfer'\n")
    assert "VLLM_USE_FLASHINFER_SAMPLER=0" in explain(log, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "other"}, "managed or attached"),
        ({"mode": "attached"}, "at least one server"),
        ({"mode": "attached", "urls": "http://x:1"}, "urls is 'http://x:1'; it must be a list of at least one server"),
        ({"urls": ("http://x",)}, "mode=attached"),
        ({"model": None}, "hub id or a folder"),
        ({"gpu_memory_utilization": 1.5}, "at most 1"),
        ({"max_model_len": 0}, "above 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**changes)
