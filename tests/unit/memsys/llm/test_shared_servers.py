"""Servers that jobs share: found through a folder, waited for, restarted, ended when nobody needs them."""

import contextlib
import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.running.backbones import server_group
from eval.running.composed import plan_of
from eval.running.plan import Plan
from eval.serve import make_engine, serve_plan
from memsys.errors import BackboneError, ConfigError, MemsysError
from memsys.llm.engines import device_turn, shared
from memsys.llm.engines.contract import Endpoint
from memsys.llm.engines.registry import Registry, ServerRecord
from memsys.llm.engines.serving import serve
from memsys.llm.engines.shared import SharedEngine
from memsys.llm.engines.vllm import VllmEngineConfig
from memsys.llm.engines.vllm.launch import INTERPRETER_VARIABLE, command, environment
from tests.support.stub_server import StubServer

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("memsys.heartbeat", "memsys.llm.engines.serving"):
        monkeypatch.setattr(f"{module}.BEAT_SECONDS", 0.05)
    monkeypatch.setattr("memsys.heartbeat.GONE_SECONDS", 1.0)
    monkeypatch.setattr(shared, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(shared, "_REPORT_SECONDS", 0.2)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "group-1")


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


class OwnServer:
    """An engine around the stub; ``dies`` lets the next looks find another server in its place."""

    name = "vllm"

    def __init__(self, *servers: StubServer, error: str = "") -> None:
        self.servers, self.current, self.error, self.stops = servers, 0, error, 0

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        if self.error:
            raise BackboneError(self.error)
        return self.recover(log_dir)

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        return [Endpoint(self.servers[self.current].url, "stub")]

    def stop(self) -> None:
        self.stops += 1

    def fingerprint(self) -> Mapping[str, Any]:
        return {"engine": "vllm", "model": "stub"}


def record(url: str, **changes: Any) -> ServerRecord:
    settings = {"urls": [url], "model": "stub", "fingerprint": {"model": "stub"}, "process": 1, "job": "",
                "host": socket.gethostname()}  # fmt: skip
    return ServerRecord(**{**settings, **changes})


def serving(engine: OwnServer, registry: Registry, tmp_path: Path, idle_s: float) -> tuple[threading.Thread, list[str]]:
    reasons: list[str] = []

    def run() -> None:
        reasons.append(serve(engine, registry, tmp_path, host="127.0.0.1", idle_s=idle_s))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, reasons


def test_a_job_finds_the_server_and_what_it_serves(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    engine, own = SharedEngine("vllm", registry, wait_s=5), OwnServer(stub)
    thread, reasons = serving(own, registry, tmp_path, idle_s=0.5)
    (endpoint,) = engine.start(tmp_path)
    assert endpoint.base_url == stub.url and endpoint.model == "stub"
    assert engine.fingerprint() == own.fingerprint() and registry.leases() == 1
    time.sleep(1.0)
    assert not reasons, "it is needed"
    engine.stop()
    thread.join(10)
    assert reasons == ["no job has needed it for 0 s"] and own.stops == 1
    assert registry.leases() == 0 and registry.servers() == []


def test_one_server_of_a_group_at_a_time_has_the_devices(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two sweeps on one machine started two servers on the same two cores, and neither came up in time."""
    monkeypatch.setattr(device_turn, "_POLL_SECONDS", 0.02)
    caplog.set_level("INFO")
    got = threading.Event()

    def second() -> None:
        with device_turn.device_turn(registry, wait=True):
            got.set()

    waits = threading.Thread(target=second, daemon=True)
    with device_turn.device_turn(registry, wait=True):
        waits.start()
        assert not got.wait(0.3)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        with device_turn.device_turn(registry, wait=True):  # other devices are free
            pass
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        with device_turn.device_turn(registry, wait=False):  # started by hand: beside the other
            pass
    assert got.wait(30)
    waits.join(30)
    assert "on these devices; this one starts when it ends" in caplog.text


@pytest.mark.parametrize("beside", [False, True])
def test_a_server_that_did_not_wait_has_the_turn_as_soon_as_it_is_free(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """Started beside another one, it served without the lock when that ended, and a sweep started one more."""
    monkeypatch.setattr(device_turn, "_POLL_SECONDS", 0.1)
    got = threading.Event()

    def waiting() -> None:
        with device_turn.device_turn(registry, wait=True):
            got.set()

    waits = threading.Thread(target=waiting, daemon=True)
    with contextlib.ExitStack() as other:
        if beside:
            other.enter_context(device_turn.device_turn(registry, wait=True))
        with device_turn.device_turn(registry, wait=False):
            time.sleep(0.3)
            other.close()
            time.sleep(0.3)
            waits.start()
            assert not got.wait(0.5)
        assert got.wait(30)
    waits.join(30)


def test_a_turn_ends_with_its_process(registry: Registry) -> None:
    holds = (
        "import sys, time; from pathlib import Path; from memsys.llm.engines.registry import Registry\n"
        "from memsys.llm.engines.device_turn import device_turn\n"
        "with device_turn(Registry(Path(sys.argv[1])), wait=True): print('held', flush=True); time.sleep(60)"
    )
    line = [sys.executable, "-c", holds, str(registry.folder)]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        other.kill()
    with device_turn.device_turn(registry, wait=True):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    registry = Registry(tmp_path / "file" / "group")
    with pytest.raises(MemsysError, match=r"set serving\.folder"), device_turn.device_turn(registry, wait=True):
        pass


def test_a_job_waits_for_a_server_and_asks_for_one(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    asked: list[float] = []
    engine = SharedEngine("vllm", registry, wait_s=10, on_absence=lambda: asked.append(time.monotonic()))
    late = registry.published("late", record(stub.url))
    timer = threading.Timer(0.6, late.__enter__)
    timer.start()
    try:
        assert engine.start(tmp_path)[0].base_url == stub.url
        assert asked
    finally:
        timer.join()
        late.__exit__(None, None, None)
        engine.stop()


def test_nobody_waits_for_a_server_that_could_not_start(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="no GPU here"):
        serve(OwnServer(error="no GPU here"), registry, tmp_path, host="127.0.0.1", idle_s=1)
    engine = SharedEngine("vllm", registry, wait_s=60)
    with pytest.raises(BackboneError, match=r"did not come up: no GPU here"):
        engine.start(tmp_path)
    registry.clear_failure()
    engine.stop()
    with pytest.raises(BackboneError, match=r"serving.wait_s"):
        SharedEngine("vllm", registry, wait_s=0.1).start(tmp_path)


class Health:
    """Whether the servers of a test answer; ``back_after`` lets them do so again a while later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.good = True
        monkeypatch.setattr(shared, "is_healthy", lambda root: self.good)

    def back_after(self, seconds: float) -> None:
        self.good = False
        threading.Timer(seconds, setattr, (self, "good", True)).start()


def test_jobs_wait_for_their_server_though_a_replica_of_it_has_failed(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All jobs gave up at once, with the reason of the replica."""
    health, engine = Health(monkeypatch), SharedEngine("vllm", registry, wait_s=10)
    try:
        with registry.published("one", record("http://127.0.0.1:9/v1")):
            assert engine.start(tmp_path)
            registry.note_failure("replica 2: no GPU here")
            health.back_after(0.3)
            assert [endpoint.model for endpoint in engine.recover(tmp_path)] == ["stub"]
        late = registry.published("one", record("http://127.0.0.1:9/v1"))
        with registry.attempted("one", socket.gethostname()):  # it loads its model again
            registry.note_failure("replica 2: no GPU here either")
            timer = threading.Timer(0.3, late.__enter__)
            timer.start()
            assert engine.recover(tmp_path)
            timer.join()
        late.__exit__(None, None, None)
    finally:
        engine.stop()


def test_a_failure_from_before_a_server_was_seen_ends_no_job(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's batch job was interrupted and waits in the queue, where nobody announces it."""
    Health(monkeypatch)
    engine = SharedEngine("vllm", registry, wait_s=0.2)
    registry.note_failure("replica 2: no GPU here")
    try:
        with registry.published("one", record("http://127.0.0.1:9/v1")):
            engine.start(tmp_path)
        with pytest.raises(BackboneError, match=r"serving\.wait_s"):
            engine.recover(tmp_path)
        time.sleep(0.05)  # a tick of the disk's clock
        registry.note_failure("replica 1: died 2 times")
        with pytest.raises(BackboneError, match="did not come up: replica 1"):
            engine.recover(tmp_path)
    finally:
        engine.stop()


@pytest.mark.parametrize("machine", ["", "another-machine"])
def test_an_attempt_counts_where_its_server_can_be_reached(registry: Registry, tmp_path: Path, machine: str) -> None:
    registry.note_failure("no GPU here")
    engine = SharedEngine("vllm", registry, wait_s=0.2)
    expected = "no GPU here" if machine else r"serving\.wait_s"
    try:
        with registry.attempted("one", machine), pytest.raises(BackboneError, match=expected):
            engine.start(tmp_path)
    finally:
        engine.stop()


def test_a_server_is_expected_from_its_start_to_its_end(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    expected: list[bool] = []

    class Watched(OwnServer):
        def start(self, log_dir: Path) -> Sequence[Endpoint]:
            expected.append(registry.expected())
            return super().start(log_dir)

    for host in ("127.0.0.1", "node7"):
        serve(Watched(stub), registry, tmp_path, host=host, idle_s=0.1)
    assert expected == [True, True] and not registry.expected()


def test_a_server_that_moves_is_announced_anew(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    with StubServer() as second:
        own, engine = OwnServer(stub, second), SharedEngine("vllm", registry, wait_s=10)
        thread, _ = serving(own, registry, tmp_path, idle_s=0.3)
        try:
            assert engine.start(tmp_path)[0].base_url == stub.url
            own.current = 1
            stub.stop_listening()
            assert engine.recover(tmp_path)[0].base_url == second.url
        finally:
            engine.stop()
            thread.join(10)


def test_a_server_of_another_model_is_refused(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    engine = SharedEngine("vllm", registry, wait_s=5)
    try:
        with registry.published("a", record(stub.url)):
            engine.start(tmp_path)
        with (
            registry.published("b", record(stub.url, fingerprint={"model": "other"})),
            pytest.raises(BackboneError, match="began with"),
        ):
            engine.recover(tmp_path)
    finally:
        engine.stop()


def test_a_dead_server_is_not_offered(registry: Registry, stub: StubServer, tmp_path: Path) -> None:
    with registry.published("old", record(stub.url)) as beat:
        os.utime(beat.path, (time.time() - 60,) * 2)
        assert registry.servers() == []
        beat.touch()
        assert len(registry.servers()) == 1


def test_the_loopback_address_of_another_machine_is_no_server_here(
    registry: Registry, stub: StubServer, tmp_path: Path
) -> None:
    with (
        registry.published("elsewhere", record(stub.url, host="another-machine")),
        pytest.raises(BackboneError, match=r"serving.wait_s"),
    ):
        SharedEngine("vllm", registry, wait_s=0.1).start(tmp_path)
    assert record("http://node7:8000/v1", host="another-machine").reachable()


def test_signs_of_life_outlast_a_bad_moment_of_the_disk(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    touched, touch = [], os.utime

    def flaky(path: Path) -> None:
        touched.append(path)
        if len(touched) < 3:
            raise OSError(errno.ESTALE, "Stale file handle")
        touch(path)

    monkeypatch.setattr("memsys.heartbeat.os.utime", flaky)
    lease = registry.lease("job").start()
    deadline = time.monotonic() + 10
    while len(touched) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    lease.remove()
    assert len(touched) >= 5


def test_a_server_outlasts_a_disk_that_fails_for_a_moment(
    registry: Registry, stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of all jobs ended in a traceback."""
    asked, leases, touch = [], registry.leases, os.utime

    def stale(path: Path, times: None = None) -> None:
        if path.name.startswith("server-"):
            raise OSError(errno.ESTALE, "Stale file handle")
        touch(path, times)

    def flaky() -> int:
        asked.append(1)
        if len(asked) < 3:
            raise OSError(errno.ESTALE, "Stale file handle") if len(asked) == 1 else MemsysError("cannot make it")
        return leases()

    monkeypatch.setattr("memsys.heartbeat.os.utime", stale)
    monkeypatch.setattr(registry, "leases", flaky)
    own = OwnServer(stub)
    assert serve(own, registry, tmp_path, host="127.0.0.1", idle_s=0.1) == "no job has needed it for 0 s"
    assert own.stops == 1 and len(asked) > 3


@pytest.mark.parametrize("failing", ["now", "key", "prepared"])
def test_a_job_outlasts_a_disk_that_fails_for_a_moment(
    registry: Registry, stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The whole run ended in a traceback."""
    engine, works, asked = SharedEngine("vllm", registry, wait_s=10), getattr(registry, failing), list[int]()

    def flaky() -> Any:
        asked.append(1)
        if len(asked) < 3:
            raise MemsysError("cannot make it") if failing == "prepared" else OSError(errno.ESTALE, "Stale file handle")
        return works()

    try:
        with registry.published("a", record(stub.url)):
            engine.start(tmp_path)
            monkeypatch.setattr(registry, failing, flaky)
            assert engine.recover(tmp_path)[0].base_url == stub.url and len(asked) >= 3
    finally:
        engine.stop()


def test_a_disk_that_keeps_failing_is_named_when_the_time_is_over(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stale(folder: Path) -> float:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("memsys.llm.engines.registry.disk_time", stale)
    engine = SharedEngine("vllm", registry, wait_s=0.3)
    try:
        with pytest.raises(BackboneError, match=r"serving\.wait_s.*Stale file handle"):
            engine.start(tmp_path)
    finally:
        engine.stop()
    assert caplog.text.count("trying again") == 1


def test_waiting_ends_when_the_job_does(registry: Registry, tmp_path: Path) -> None:
    engine = SharedEngine("vllm", registry, wait_s=60)
    threading.Timer(0.3, engine.stop).start()
    begun = time.monotonic()
    with pytest.raises(BackboneError, match="stopped while waiting"):
        engine.start(tmp_path)
    assert time.monotonic() - begun < 10


def test_the_password_is_one_and_its_owners(registry: Registry) -> None:
    keys = {registry.key() for _ in range(3)}
    assert len(keys) == 1 and len(keys.pop()) > 30
    assert stat.S_IMODE((registry.folder / "key").stat().st_mode) == 0o600


def test_one_key_for_processes_that_make_it_at_once(registry: Registry) -> None:
    line = [sys.executable, "-c", "import sys; from pathlib import Path\n"
            "from memsys.llm.engines.shared import Registry\nprint(Registry(Path(sys.argv[1])).key())",
            str(registry.folder)]  # fmt: skip
    made = [subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({process.communicate(timeout=60)[0] for process in made}) == 1


def test_a_record_holds_no_secret(registry: Registry, stub: StubServer) -> None:
    key = registry.key()
    with registry.published("a", record(stub.url)) as beat:
        assert key not in beat.path.read_text() and json.loads(beat.path.read_text())["urls"] == [stub.url]


def plan(tmp_path: Path, *overrides: str) -> Plan:
    return plan_of([f"serving.folder={tmp_path}", *overrides])


def test_only_vllm_serves_other_machines_and_with_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "")
    monkeypatch.delenv("VLLM_API_KEY")
    monkeypatch.setenv(INTERPRETER_VARIABLE, sys.executable)
    registry = Registry(tmp_path / "g")
    inside = make_engine(plan(tmp_path, "backbone=qwen3_06b"), "127.0.0.1", registry)
    assert "127.0.0.1" in command(inside._config, "a/b", 1) and "VLLM_API_KEY" not in os.environ  # type: ignore[attr-defined]
    outside = make_engine(plan(tmp_path, "backbone=qwen3_06b"), "node7", registry)
    assert "0.0.0.0" in command(outside._config, "a/b", 1)  # type: ignore[attr-defined]
    assert os.environ["VLLM_API_KEY"] == registry.key()
    with pytest.raises(ConfigError, match="only vLLM"):
        make_engine(plan(tmp_path, "backbone=smollm2_135m"), "node7", registry)
    unfit = plan(tmp_path, "backbone=smollm2_135m")
    with pytest.raises(ConfigError, match="only vLLM"):
        serve_plan(unfit, "node7")
    assert unfit.backbone is not None
    assert "only vLLM" in Registry(tmp_path / server_group(unfit.backbone)).failure(), "jobs would wait for it"
    with pytest.raises(ConfigError, match="no server"):
        serve_plan(plan(tmp_path, "mode=retrieval_only"), "127.0.0.1")


def test_runs_find_a_server_that_listens_elsewhere(tmp_path: Path) -> None:
    """A server that was started with ``backbone.engine.port=8000`` serves runs that name no port."""

    def group(*overrides: str) -> str:
        backbone = plan(tmp_path, "backbone=qwen3_06b", *overrides).backbone
        assert backbone is not None
        return server_group(backbone)

    assert group() == group("backbone.engine.port=8000", "backbone.engine.start_timeout_s=60")
    assert group() != group("backbone.engine.dtype=float16")
    assert group() != group("backbone.engine.tensor_parallel_size=2")


def test_a_model_on_a_shared_disk_needs_no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder under ``$MEMSYS_MODELS`` with the hub's name stands for the hub's model; the hub is not asked."""
    folder = tmp_path / "Qwen" / "Qwen3-0.6B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    monkeypatch.setenv(INTERPRETER_VARIABLE, sys.executable)
    backbone = plan(tmp_path, "backbone=qwen3_06b").backbone
    assert backbone is not None and isinstance(backbone.engine, VllmEngineConfig)
    line = command(backbone.engine, "Qwen/Qwen3-0.6B", 1)
    assert str(folder) in line and "--revision" not in line
    assert environment(backbone.engine, "Qwen/Qwen3-0.6B")["HF_HUB_OFFLINE"] == "1"
