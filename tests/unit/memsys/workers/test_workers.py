"""The line protocol and the process behind it, spoken for real by the tests' own worker; no package is needed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.runs.snapshot import load_snapshot, save_snapshot
from memsys.embedding.hashing import HashingEmbedder
from memsys.errors import AssetError, ConfigError, WorkerEndedError, WorkerError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.engines.process import running_members
from memsys.llm.none import NoBackbone
from memsys.llm.passthrough import ForeignCall
from memsys.llm.usage import MeteredModel, metered
from memsys.protocol import Parts
from memsys.proxy import server as proxy_server
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Turn, Unit
from memsys.workers import messages, worker_loop
from memsys.workers.memory import PackageMemory
from memsys.workers.process import WorkerCommand, WorkerProcess
from scripts import make_package_env
from tests.support.composing import memory_config
from tests.support.package_runs import TINY, PackageRun, package_reply, sample, tiny_config
from tests.support.stub_server import StubServer


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as running:
        running.state.replies = package_reply
        yield running


class Echo:
    """A backbone that says the request's hash."""

    context_length = 1000

    def __init__(self) -> None:
        self.calls: list[ForeignCall] = []

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        self.calls.append(call)
        return CompletedAttempt(Completion(call.key, 1, 1, 0.0, "stop"), call.key, cache_hit=False)

    async def count_tokens(self, text: str) -> int:
        return len(text)


def memory(tmp_path: Path, llm: Any = None, **settings: Any) -> PackageMemory:
    config: Any = tiny_config(**settings)
    made = config.build(Parts("c", llm or Echo(), HashingEmbedder(8), 1, log_dir=tmp_path))
    assert isinstance(made, PackageMemory)
    return made


async def written(one: PackageMemory) -> list[Unit]:
    units = list(one.units(sample().conversation))
    for unit in units:
        await one.write(unit, None)
    await one.consolidate()
    return units


@asynccontextmanager
async def closed(*memories: PackageMemory) -> AsyncIterator[None]:
    """Close memories at the end, whatever happens before."""
    try:
        yield
    finally:
        for one in memories:
            await one.close()


def test_units_are_turns_of_one_session_and_lineage_follows_adds_updates_and_deletes(tmp_path: Path) -> None:
    one = memory(tmp_path)

    async def run() -> tuple[Any, ...]:
        try:
            units = await written(one)
            found = await one.retrieve("boat")
            again = await one.retrieve("boat")
            return units, found, again, await one.export(), one.state()
        finally:
            await one.close()

    units, found, again, exported, state = asyncio.run(run())
    assert [len(unit.turns) for unit in units] == [2] * 6
    assert found == again and found.traced
    # The first memory is updated by the fourth and later writes; the third is deleted at the end.
    origins = {hit.turn_ids for hit in found.hits}
    assert origins == {("D1:1", "D1:2", *(f"D2:{n}" for n in range(1, 7))), ("D1:3", "D1:4")}
    assert [stored.text for stored in exported] != []
    assert [rows[0][1] for rows in state["changes"]] == ["add"] * 3 + ["update"] * 3
    assert state["final"][0][1] == "delete"
    assert one.statistics() == {
        "package": "tiny", "version": "1", "lineage": "changes", "lineage_reason": "",
        "writes": 6, "added": 3, "updated": 3, "deleted": 1, "memories": 2,
    }  # fmt: skip


def test_a_snapshot_is_written_again_by_another_worker(tmp_path: Path) -> None:
    first, second = memory(tmp_path), memory(tmp_path)

    async def run() -> tuple[Any, Any]:
        async with closed(first, second):
            await written(first)
            save_snapshot(tmp_path / "m.npz", first.state())
            second.load_state(load_snapshot(tmp_path / "m.npz"))
            return await first.retrieve("boat"), await second.retrieve("boat")

    straight, resumed = asyncio.run(run())
    assert straight == resumed
    assert first.state() == second.state()


def test_a_resumed_memory_is_up_to_date_before_it_is_asked(tmp_path: Path) -> None:
    """The worker was started, and everything written to it again, within the next step, which is timed."""
    first, second = memory(tmp_path), memory(tmp_path)

    async def run() -> None:
        async with closed(first, second):
            await second.resume()  # nothing was written: no worker is needed yet
            assert second._session is None
            await written(first)
            second.load_state(first.state())
            await second.resume()
            session = second._session
            assert session is not None
            assert await second.retrieve("boat") == await first.retrieve("boat")
            assert second._session is session

    asyncio.run(run())


def test_a_replay_that_makes_something_else_is_refused(tmp_path: Path) -> None:
    first, second = memory(tmp_path), memory(tmp_path)

    async def run() -> None:
        async with closed(first, second):
            await written(first)
            state: Any = dict(first.state())
            state["changes"] = [[["another", "add"]], *state["changes"][1:]]
            second.load_state(state)
            await second.retrieve("boat")

    with pytest.raises(WorkerError, match="unit D1:1 changed other memories than the first time"):
        asyncio.run(run())


class Says(Echo):
    """A backbone that says one text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        answered = await super().complete(call)
        return replace(answered, completion=replace(answered.completion, text=self._text))


@pytest.mark.parametrize("older", [False, True])
def test_a_replay_that_gets_other_replies_is_refused(tmp_path: Path, older: bool) -> None:
    """Ids follow from the seed: other memories under the ids of the first time passed for the same."""
    first, second = memory(tmp_path, Says("a ship")), memory(tmp_path, Says("a boat"))

    async def run() -> str:
        async with closed(first, second):
            await written(first)
            state: Any = dict(first.state())
            if older:  # a snapshot that does not say what the replies were
                del state["replies"], state["final_replies"]
            second.load_state(state)
            return (await second.retrieve("boat")).hits[0].text

    if older:
        assert "a boat" in asyncio.run(run())
    else:
        with pytest.raises(WorkerError, match="unit D1:1 got other replies than the first time"):
            asyncio.run(run())


def test_another_version_does_not_go_on_with_what_was_written(tmp_path: Path) -> None:
    first, second = memory(tmp_path), memory(tmp_path)

    async def run() -> None:
        async with closed(first, second):
            await written(first)
            second.load_state({**first.state(), "described": {**first.state()["described"], "version": "0"}})
            await second.resume()

    with pytest.raises(WorkerError, match=r"conversation c was begun with tiny 0, and the worker runs tiny 1 now"):
        asyncio.run(run())


def test_calls_that_are_made_again_are_counted_once(tmp_path: Path) -> None:
    """A gate counted the calls of a replay among those of the write before which its host's worker had ended."""
    model = Echo()
    one = memory(tmp_path, MeteredModel(model))

    async def run() -> list[int]:
        units, counted = list(one.units(sample().conversation)), []
        try:
            for unit in units[:3]:
                with metered() as usage:
                    await one.write(unit, None)
                counted.append(usage.calls)
                await one.close()
            return counted
        finally:
            await one.close()

    assert asyncio.run(run()) == [1, 1, 1]
    assert len(model.calls) == 1 + 2 + 3


def test_what_a_package_prints_is_in_its_log(tmp_path: Path) -> None:
    one = memory(tmp_path)

    async def run() -> None:
        await written(one)
        await one.close()

    asyncio.run(run())
    assert "a package may print what it likes" in (tmp_path / "worker-c.log").read_text()


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    one = memory(tmp_path / "taken")
    with pytest.raises(WorkerError, match=r"the worker's log .*worker-c\.log cannot be written \(File exists\)"):
        asyncio.run(one.retrieve("boat"))


def test_without_lineage_hits_name_no_turns_and_evidence_is_not_scored(server: StubServer, tmp_path: Path) -> None:
    from eval.runs.records import ReferenceRecord, RetrievalRecord
    from eval.score import load_preset
    from eval.scoring.retrievals import retrieval_scores
    from memsys.rows import record_from

    run = PackageRun(server, tmp_path, tiny_config(lineage="none"))
    run.go()
    rows = run.rows("retrievals")
    assert all(hit["turn_ids"] == [] for row in rows for hit in row["hits"])
    assert run.statistics()["lineage_reason"] == "it is told not to say"
    gold = ReferenceRecord("q0", "talk", 4, ["x"], None, ["D1:1"], [], ["the boat"])
    scores = retrieval_scores(record_from(RetrievalRecord, rows[0]), gold, load_preset("default"))
    assert scores["recall@10"] is None and scores["e_f1"] is None
    assert scores["recall@10_substring"] is not None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"fault": "raise", "at": "D1:3"}, "'add' failed: KeyError: 'no such thing'"),
        ({"fault": "nonsense", "at": "D1:3"}, "'add' failed: TypeError: Object of type set is not JSON"),
        ({"fault": "hang", "at": "D1:3"}, "no reply to 'add' within 0.5 s"),
        ({"fault": "exit", "at": "D1:3"}, "it ended before it replied to 'add'"),
        ({"lineage": "perhaps"}, "lineage='perhaps'; a worker has one of changes, none"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_one_message(tmp_path: Path, settings: dict[str, str], problem: str) -> None:
    limit = 0.5 if settings.get("fault") == "hang" else 60.0
    config: Any = replace(tiny_config(**settings), quiet_timeout_s=limit, restarts=1)  # type: ignore[type-var]
    one = config.build(Parts("c", Echo(), HashingEmbedder(8), 1, log_dir=tmp_path))

    async def run() -> None:
        try:
            await written(one)
        finally:
            await one.close()

    with pytest.raises(WorkerError) as raised:
        asyncio.run(run())
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


#: What a program that is not a worker says when it is spoken to.
NONSENSE = {
    "print('hello')": "is not JSON: b'hello",
    'print(\'{"id": 7, "result": {}}\')': "answers another request",
    "print('{\"id\": 1}')": "has no result",
}


@pytest.mark.parametrize("code", NONSENSE)
def test_a_reply_that_is_none_is_one_message(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"input()\n{code}\n")
    monkeypatch.setattr(worker_loop, "__file__", str(program))

    async def run() -> None:
        command = WorkerCommand("nonsense", Path(sys.executable), program, tmp_path / "log")
        process = await WorkerProcess.start(command, tmp_path)
        try:
            await process.request("open", {}, limit_s=20)
        finally:
            await process.close()

    with pytest.raises(WorkerError, match="worker nonsense: its reply to 'open'") as raised:
        asyncio.run(run())
    assert NONSENSE[code] in str(raised.value)


def test_a_worker_that_ends_again_and_again_is_given_up_and_one_conversation_with_it(
    server: StubServer, tmp_path: Path
) -> None:
    run = PackageRun(server, tmp_path, tiny_config(fault="exit", at="D2:1"))
    outcome = run.go()
    assert outcome is not None and "it ended before it replied" in outcome.failures["talk"]
    assert run.answers() == {}


def test_a_failed_call_stops_the_run_even_if_the_package_goes_on(server: StubServer, tmp_path: Path) -> None:
    server.state.every = "400"
    outcome = PackageRun(server, tmp_path, tiny_config()).go()
    assert outcome is not None and "stub failure 400" in outcome.failures["talk"]
    said = outcome.failures["talk"]
    assert said.startswith("tiny made a request that this backbone does not take, though its server runs")
    assert "check that the server is running" not in said


def test_a_refused_request_stops_the_run_even_if_the_package_goes_on(server: StubServer, tmp_path: Path) -> None:
    """Such a memory lacked every unit, and its conversation counted as finished."""
    run = PackageRun(server, tmp_path, tiny_config(swallow=True, temperature=2.5))
    outcome = run.go()
    assert outcome is not None and run.answers() == {}
    said = outcome.failures["talk"]
    assert said.startswith("tiny: in 'add' of D1:1, conversation talk, a request of the package got no reply")
    assert "/chat/completions was refused: temperature=2.5 must be a number from 0 to 2. Correct that" in said


def test_a_request_with_another_key_stops_the_run_even_if_the_package_goes_on(
    server: StubServer, tmp_path: Path
) -> None:
    """Nobody was known to have asked: every unit was lost, and the conversation counted as finished."""
    run = PackageRun(server, tmp_path, tiny_config(swallow=True, key="sk-none"))
    outcome = run.go()
    assert outcome is not None and run.answers() == {}
    assert "/chat/completions was refused: its key is not the one that the worker was given" in outcome.failures["talk"]
    assert server.state.count == 0


def test_a_fault_of_the_proxy_stops_the_run_even_if_the_package_goes_on(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(proxy_server, "completion_body", broken)
    outcome = PackageRun(server, tmp_path, tiny_config(swallow=True)).go()
    assert outcome is not None
    assert "went on without it: a fault of the proxy, ZeroDivisionError: ours; please" in outcome.failures["talk"]


def test_a_package_may_try_what_is_served(server: StubServer, tmp_path: Path) -> None:
    run = PackageRun(server, tmp_path, tiny_config(probe=True))
    outcome = run.go()
    assert outcome is not None and outcome.failures == {}
    assert len(run.answers()) == 4


def test_a_worker_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """The parent is killed while the worker sleeps in an add."""
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from memsys.workers.process import WorkerCommand, WorkerProcess\n"
        "async def run(folder, worker):\n"
        "    command = WorkerCommand('tiny', Path(sys.executable), worker, folder / 'log')\n"
        "    process = await WorkerProcess.start(command, folder)\n"
        "    opening = {'protocol': 1, 'seed': 1, 'settings': {'fault': 'hang', 'at': 'u'}}\n"
        "    await process.request('open', opening, limit_s=60)\n"
        "    print(process.pid, flush=True)\n"
        "    await process.request('add', {'unit': {'unit_id': 'u', 'turns': []}}, limit_s=60)\n"
        "asyncio.run(run(*map(Path, sys.argv[1:])))\n"
    )
    root = Path(__file__).resolve().parents[4]
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(TINY)], stdout=subprocess.PIPE, cwd=root
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    for _ in range(500):
        if not running_members(worker):
            break
        asyncio.run(asyncio.sleep(0.02))
    assert running_members(worker) == set()


def test_a_worker_sees_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memsys.workers.process import worker_environment

    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://elsewhere")
    assert not {"OPENAI_API_KEY", "HTTPS_PROXY"} & set(worker_environment(tmp_path))


def test_a_missing_environment_names_the_command_that_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memsys.workers.environments.workplace", lambda *parts: tmp_path.joinpath(*parts))
    config: Any = memory_config("package_mem0")
    with pytest.raises(AssetError, match=r"is not there; make it with `python scripts/make_package_env.py mem0`"):
        config.check_assets()


def test_a_python_that_does_not_run_is_not_taken_for_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    lock = tmp_path / "requirements.lock"
    lock.write_text("# locked\n# python: 3.99\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"is for Python 3.99; install it, or name one with --python"):
        make_package_env.find_python(lock)


def test_a_worker_is_given_the_time_of_a_turn_where_its_date_can_be_read() -> None:
    turns = [Turn("D1:1", "s1", "Ann", "hi", "1:56 pm on 8 May, 2023"), Turn("D1:2", "s1", "Ben", "ho", "that spring")]
    sent = messages.unit_message(Unit("D1:1", tuple(turns), None), TurnFormat())["turns"]
    assert [turn["time"] for turn in sent] == ["2023-05-08T13:56:00", ""]


def test_without_a_backbone_a_package_is_refused(tmp_path: Path) -> None:
    one = memory(tmp_path, NoBackbone("tiny"))

    async def run() -> None:
        try:
            await written(one)
        finally:
            await one.close()

    with pytest.raises(ConfigError, match=r"mode=retrieval_only and open_memory\(backbone=None\) have none"):
        asyncio.run(run())


def test_both_sides_speak_the_same_protocol() -> None:
    assert messages.PROTOCOL == worker_loop.PROTOCOL
    assert issubclass(WorkerEndedError, WorkerError)


def test_calls_are_planned_from_the_counts_of_the_preset() -> None:
    from memsys.call_model import DataShape

    config: Any = memory_config("package_mem0")
    found = config.expected_calls(DataShape(turns=[5], sessions=[2, 3], questions={"a": 3}))
    assert [(one.phase, one.role, one.calls) for one in found] == [("write", "chat", 12.0)]  # three writes of four
