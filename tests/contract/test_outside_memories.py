"""What goes wrong in a memory from outside is one message and loses nothing: over an object, HTTP and MCP alike."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.config.compose import compose, config_loader
from eval.running.composed import compose_plan, make_part
from eval.running.experiment import run_experiment
from memsys.errors import MemsysError
from memsys.llm.none import NoBackbone
from memsys.protocol import Parts
from memsys.vocabulary import Turn, Unit
from tests.end_to_end.test_resume import finish, kill_after
from tests.support.fakes import WordEmbedder
from tests.support.outside_memory import CHOSEN, WRONG
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "tests.support.outside_memory"]
KINDS = ["object", "http", pytest.param("mcp", marks=pytest.mark.outside)]
COMMON = [
    "dataset=locomo_sample", "dataset.limit_questions=6", "mode=retrieval_only", "embedder=hashing", "progress=lines",
    "score=false", "memory.unit=turn", "memory.k=3",
]  # fmt: skip


class Outside:
    """A memory of one kind, with its settings and the file that chooses its fault."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.fault, self._server = kind, folder / "fault", None
        self.settings: list[str] = []
        self.start()

    def start(self, *port: str) -> None:
        if self.kind == "object":
            self.settings = ["memory=object", "memory.object=tests.support.outside_memory:Words"]
        elif self.kind == "http":
            self.close()
            environment = {**os.environ, CHOSEN: str(self.fault)}
            self._server = subprocess.Popen(
                [*PROGRAM, "http", *port], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
            )
            assert self._server.stdout is not None
            self.settings = ["memory=http", f"memory.url={self._server.stdout.readline().strip()}", "memory.timeout=60"]
        else:
            variables = f"{{PYTHONPATH: '{ROOT}', {CHOSEN}: '{self.fault}'}}"
            self.settings = [
                "memory=mcp", f"memory.command=[{','.join(PROGRAM)},mcp]", f"memory.environment={variables}",
                "memory.write_tool=add", "memory.write_arguments={text: '{text}', key: '{key}'}",
                "memory.search_tool=search", "memory.search_arguments={query: '{query}', k: '{k}'}",
                "memory.timeout=60",
            ]  # fmt: skip

    def steps(self) -> list[str]:
        log = Path(f"{self.fault}.log")
        return log.read_text().splitlines() if log.is_file() else []

    def close(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.communicate()


@pytest.fixture
def outside(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    memory = Outside(request.param, tmp_path)
    monkeypatch.setenv(CHOSEN, str(memory.fault))
    yield memory
    memory.close()


def run(memory: Outside, folder: Path) -> list[dict[str, Any]]:
    result = run_experiment(compose_plan([*COMMON, *memory.settings, f"run_dir={folder}"]))
    assert result.complete
    return found(folder)


def found(folder: Path) -> list[dict[str, Any]]:
    """What was found, without times and ids that a memory chose."""
    rows = [json.loads(line) for line in (folder / "retrievals.jsonl").read_text().splitlines()]
    return [
        {"question": row["question_id"], "turns": [hit["turn_ids"] for hit in row["hits"]], "context": row["context"]}
        for row in sorted(rows, key=lambda row: str(row["question_id"]))
    ]


FAULTS = [
    ("add raises", "no such table|Error executing tool add"),
    ("search raises", "no such table|Error executing tool search"),
    ("search number", " is 7"),
]


@pytest.mark.parametrize("outside", KINDS, indirect=True)
def test_a_fault_is_one_message_and_the_same_command_goes_on(outside: Outside, tmp_path: Path) -> None:
    whole = run(outside, tmp_path / "whole")
    for place, (fault, said) in enumerate(FAULTS):
        folder = tmp_path / f"run{place}"
        outside.fault.write_text(fault)
        with pytest.raises(MemsysError, match=said):
            run(outside, folder)
        outside.fault.unlink()
        assert not (folder / "scores.jsonl").exists()
        assert run(outside, folder) == whole, fault


WHERE = {
    "object": "what Words.search() returned",
    "http": "memory.url=http://127.0.0.1:",
    "mcp": "memory.search_tool=search: its result for memory.search_arguments={'query': '{query}', 'k': '{k}'}",
}


@pytest.mark.parametrize("outside", KINDS, indirect=True)
@pytest.mark.parametrize("structured", [False, True])
def test_a_result_of_a_wrong_type_is_one_message_that_says_where(outside: Outside, structured: bool) -> None:
    if structured and outside.kind != "mcp":
        pytest.skip("the two forms of a result are those of MCP")
    tool = ["memory.search_tool=search_structured"] if structured else []
    config = make_part(compose(config_loader(), [*outside.settings, *tool]), "memory")
    where = WHERE[outside.kind].replace("=search:", "=search_structured:" if structured else "=search:")

    async def ask() -> None:
        memory = config.build(Parts("c1", NoBackbone("words"), WordEmbedder(), 0))
        try:
            turn = Turn("t1", "s1", "Ann", "My cat is Pixel.", "")
            await memory.write(Unit("item-1", (turn,)), None)
            for fault, value in WRONG.items():
                outside.fault.write_text(f"search {fault}")
                with pytest.raises(MemsysError) as raised:
                    await memory.retrieve("Pixel")
                wrong = value[0] if isinstance(value, list) else value
                assert str(raised.value).startswith(where) and f" is {wrong!r}" in str(raised.value), fault
            outside.fault.unlink()
            assert [hit.turn_ids for hit in (await memory.retrieve("Pixel")).hits] == [("t1",)]
        finally:
            await memory.close()

    asyncio.run(ask())


@pytest.mark.parametrize("outside", KINDS[1:], indirect=True)
@pytest.mark.parametrize("fault", ["add dies", "search dies"])
def test_a_server_that_dies_is_one_message_and_the_same_command_goes_on(
    outside: Outside, tmp_path: Path, fault: str
) -> None:
    outside.fault.write_text(fault)
    with pytest.raises(MemsysError, match=r"has ended|the server is gone .* repeat the command"):
        run(outside, tmp_path / "run")
    outside.fault.unlink()
    if outside.kind == "http":  # a server of MCP is started by the run
        outside.start(outside.settings[1].rpartition(":")[2])
    assert len(run(outside, tmp_path / "run")) == 6


@pytest.mark.parametrize("outside", ["http"], indirect=True)
@pytest.mark.parametrize("step", ["add", "search"])
def test_a_server_that_is_back_at_once_and_has_lost_everything_is_noticed(
    outside: Outside, tmp_path: Path, step: str
) -> None:
    whole = run(outside, tmp_path / "whole")
    outside.fault.write_text(f"{step} restarts")
    with pytest.raises(MemsysError, match=r"no longer holds what was stored: reset_id of /stats is .* repeat the"):
        run(outside, tmp_path / "run")
    assert not (tmp_path / "run" / "scores.jsonl").exists()
    assert run(outside, tmp_path / "run") == whole


@pytest.mark.parametrize("outside", ["http"], indirect=True)
def test_a_server_that_comes_back_at_another_address_is_another_run(outside: Outside, tmp_path: Path) -> None:
    outside.fault.write_text("search dies")
    with pytest.raises(MemsysError, match=r"start it again at memory\.url=.* \(at another address it is another run\)"):
        run(outside, tmp_path / "run")
    outside.fault.unlink()
    outside.start()
    with pytest.raises(MemsysError, match=r"memory\.url"):
        run(outside, tmp_path / "run")
    assert len(run(outside, tmp_path / "other")) == 6


@pytest.mark.parametrize("outside", KINDS[1:], indirect=True)
def test_a_slow_server_is_one_message(outside: Outside, tmp_path: Path) -> None:
    outside.settings[-1] = "memory.timeout=8"
    outside.fault.write_text("search slow")
    with pytest.raises(MemsysError, match=r"failed 4 times|did not return within 8 s"):
        run(outside, tmp_path / "run")


@pytest.mark.parametrize("outside", KINDS, indirect=True)
def test_a_killed_run_goes_on_to_the_same_evidence(outside: Outside, tmp_path: Path) -> None:
    whole = run(outside, tmp_path / "whole")
    before = len(outside.steps())
    command = [
        sys.executable, "-m", "eval.run", *COMMON, *outside.settings, f"run_dir={tmp_path / 'killed'}",
        "schedule.checkpoint_every=3",
    ]  # fmt: skip
    log = Path(f"{outside.fault}.log")
    assert kill_after(command, log, before + 7)
    finish(command)
    assert found(tmp_path / "killed") == whole


@pytest.mark.parametrize("outside", KINDS, indirect=True)
def test_calls_of_the_lent_models_are_rows_of_the_run_s_ledger(outside: Outside, tmp_path: Path) -> None:
    lending = {
        "object": ["memory.object=tests.support.outside_memory:Asking"],
        "http": ["memory.lend_models=true"],
        "mcp": [f"memory.environment={{PYTHONPATH: '{ROOT}', OPENAI_BASE_URL: '{{base_url}}'}}"],
    }[outside.kind]
    shared = [each for each in COMMON if not each.startswith(("mode=", "dataset.limit"))]
    with stub_server(delay=0) as url:
        own = [each for each in outside.settings if not each.startswith("memory.environment")]
        settings = [*shared, *own, *lending, *attached(url), "dataset.limit_sessions=1", "use_cache=false"]
        result = run_experiment(compose_plan([*settings, "dataset.limit_questions=2", f"run_dir={tmp_path / 'run'}"]))
    assert result.complete
    calls = [json.loads(line) for line in (tmp_path / "run" / "calls.jsonl").read_text().splitlines()]
    asked = [(call["phase"], call["item"]) for call in calls if call["role"] == "chat"]
    writes = [item for phase, item in asked if phase == "write"]
    assert writes == [f"item-{number}" for number in range(1, len(writes) + 1)] and len(writes) > 5
    assert sorted(phase for phase, _ in asked if phase != "write") == ["retrieve", "retrieve"]
    assert all(call["prompt_tokens"] > 0 for call in calls)
