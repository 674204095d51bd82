"""Sweeps on a real Slurm: one node of our own on this machine (``make test-slurm``)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.runs.files import read_json_lines
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "private_slurm.py"
DAEMONS = ("munged", "slurmctld", "slurmd")
#: Small enough for two cores: a turn or two of the sample, hashed vectors, one thread for the embedded model.
TINY = ("dataset=locomo_sample", "embedder=hashing", "dataset.limit_sessions=1", "dataset.limit_questions=2",
        "backbone.engine.threads=1", "score=false", "progress=lines")  # fmt: skip
#: Long enough to be interrupted: all turns of the sample through CLAG, replies from a stub.
LONG = ("memory=clag_quickstart", "dataset=locomo_sample", "embedder=hashing", "score=false", "progress=lines",
        "schedule.checkpoint_every=10")  # fmt: skip
LAUNCHER = (
    "hydra/launcher=slurm",
    "hydra.launcher.poll_s=1",
    *(f"hydra.launcher.{kind}.{setting}" for kind in ("cells", "servers")
      for setting in ("cpus_per_task=2", "mem_gb=2", "timeout_min=30")),
)  # fmt: skip

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
Environment = Mapping[str, str]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Environment]:
    """A cluster for the tests of this file; yields the environment of its clients."""
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    missing = [name for name in DAEMONS if not shutil.which(name, path=path)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make test-slurm installs them)")
    folder = tempfile.mkdtemp(prefix="slurm-")  # pytest's own folders are too long for sockets
    subprocess.run([sys.executable, SCRIPT, "up", folder], check=True, timeout=90)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    try:
        yield {**kept, "PATH": path, "SLURM_CONF": f"{folder}/etc/slurm.conf"}
    finally:
        subprocess.run([sys.executable, SCRIPT, "down", folder], check=True, timeout=90)
        shutil.rmtree(folder, ignore_errors=True)


def places(folder: Path) -> tuple[str, ...]:
    return f"runs_dir={folder / 'runs'}", f"cache_dir={folder / 'cache'}", f"serving.folder={folder / 'servers'}"


def launch(slurm: Environment, folder: Path, *overrides: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "eval.run", "-m", *LAUNCHER, *places(folder), *overrides]
    return subprocess.Popen(
        line, cwd=ROOT, env=dict(slurm), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )  # fmt: skip


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    output, _ = process.communicate(timeout=400)
    assert process.returncode == code, output
    return output


def started(output: str) -> int:
    """Cells that a launcher says it has submitted."""
    return sum(line.startswith("job ") for line in output.splitlines())


def status(folder: Path, *overrides: str) -> tuple[int, str]:
    line = [sys.executable, "-m", "eval.sweep", "status", *places(folder), *overrides]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def tickets(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*/.cells/*.json"))]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def calls(folder: Path) -> int:
    """Calls booked by the only run."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / "runs").glob("*/*/calls.jsonl"))


def answers(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "runs").glob("*/*/answers.jsonl")
    rows = list(read_json_lines(path))
    assert len({row["question_id"] for row in rows}) == len(rows)
    return {row["question_id"]: (row["prediction"], row["raw"], row["options"]) for row in rows}


def ask(slurm: Environment, *line: str) -> str:
    return subprocess.run(line, env=dict(slurm), capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@pytest.fixture(scope="module")
def slow_stub() -> Iterator[str]:
    with stub_server(delay=0.1) as url:
        yield url


@pytest.fixture(scope="module")
def uninterrupted(slow_stub: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Answers of the long run without a scheduler."""
    folder = tmp_path_factory.mktemp("whole")
    line = [sys.executable, "-m", "eval.run", *places(folder), *LONG, *attached(slow_stub)]
    subprocess.run(line, cwd=ROOT, check=True, timeout=400, stdout=subprocess.DEVNULL)
    return answers(folder)


def test_two_by_two_cells_each_with_a_gpu_and_none_twice(slurm: Environment, tmp_path: Path) -> None:
    sweep = ("memory=rag_quickstart,no_memory", "seed=0,1", *TINY)
    gpus = "hydra.launcher.cells.gpus_per_node=1"
    first = ended(launch(slurm, tmp_path, *sweep, gpus, "hydra.launcher.wait=false"))
    assert started(first) == 4 and "not waiting" in first
    again = ended(launch(slurm, tmp_path, *sweep, gpus))
    assert started(again) == 0 and again.count("in the queue as") == 4
    found = tickets(tmp_path)
    assert [ticket["state"] for ticket in found] == ["done"] * 4
    assert {ticket["devices"] for ticket in found} == {"0", "1"}
    assert len({ticket["job"] for ticket in found}) == 4
    code, shown = status(tmp_path, *sweep)
    assert code == 0 and "4 of 4 cells done" in shown

    wider = ("memory=rag_quickstart,no_memory,oracle", "seed=0,1", *TINY)
    output = ended(launch(slurm, tmp_path, *wider, gpus))
    assert output.count("not started again") == 4
    assert started(output) == 2


def test_two_jobs_use_one_server_that_ends_by_itself(slurm: Environment, tmp_path: Path) -> None:
    sweep = ("memory=rag_quickstart,no_memory", *TINY)
    output = ended(launch(slurm, tmp_path, *sweep, "hydra.launcher.sharing=all", "serving.idle_s=10"))
    assert started(output) == 2
    (request,) = (tmp_path / "servers").glob("*/jobs.json")
    (server,) = json.loads(request.read_text())
    wait_for(lambda: server not in ask(slurm, "squeue", "--noheader", "--format=%A").split())
    (log,) = (tmp_path / "runs").rglob(f".submitit/{server}/*_log.err")
    assert "completed successfully" in log.read_text()
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/*/run.json")]
    assert [record["status"] for record in records] == ["complete"] * 2
    assert records[0]["model"]["engine"]["sha256"] and records[0]["model"] == records[1]["model"]
    assert not list((tmp_path / "runs").rglob("llamacpp.log")), "a cell has loaded the model itself"


def test_a_job_that_is_preempted_and_killed_ends_with_the_same_answers(
    slurm: Environment, tmp_path: Path, slow_stub: str, uninterrupted: dict[str, Any]
) -> None:
    launcher = launch(slurm, tmp_path, "hydra.launcher.partition=low", *LONG, *attached(slow_stub))
    wait_for(lambda: calls(tmp_path) >= 30)
    (ticket,) = tickets(tmp_path)
    # A job that matters more wants the whole node: Slurm signals ours, which saves, queues again and leaves.
    ask(slurm, "sbatch", "--partition=high", "--cpus-per-task=8", "--wrap=sleep 1", "--output=/dev/null")
    wait_for(lambda: tickets(tmp_path)[0]["state"] == "interrupted")
    before = calls(tmp_path)
    wait_for(lambda: calls(tmp_path) >= before + 30)
    ask(slurm, "scontrol", "requeue", ticket["job"])  # as when its machine is lost
    ended(launcher)
    (ticket,) = tickets(tmp_path)
    assert ticket["state"] == "done" and ticket["restarts"] == 2
    assert answers(tmp_path) == uninterrupted


def test_a_job_past_its_time_limit_says_so_and_the_next_sweep_takes_it_up(
    slurm: Environment, tmp_path: Path, slow_stub: str, uninterrupted: dict[str, Any]
) -> None:
    # Slurm may signal up to a minute early, before a slow machine has begun the run: the test gives the signal itself.
    limits = ("hydra.launcher.cells.timeout_min=3", "hydra.launcher.signal_delay_s=5",
              "hydra.launcher.max_num_timeout=0")  # fmt: skip
    with stub_server(delay=2.0) as stuck:
        launcher = launch(slurm, tmp_path, *limits, *LONG, *attached(stuck))
        wait_for(lambda: calls(tmp_path) >= 1)
        (ticket,) = tickets(tmp_path)
        ask(slurm, "scancel", "--signal=USR2", ticket["job"])
        output = ended(launcher, code=3)
    assert "timed-out too many times" in output and "log: " in output
    (record,) = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/*/run.json")]
    assert record["status"] == "interrupted"
    code, shown = status(tmp_path, *LONG, *attached(stuck))
    assert code == 3 and "timed-out too many times" in shown
    ended(launch(slurm, tmp_path, *LONG, *attached(slow_stub)))
    assert answers(tmp_path) == uninterrupted


def test_a_cell_that_fails_is_reported_and_the_others_run(
    slurm: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSYS_DATA", str(tmp_path))  # where the real file is not
    sweep = ("memory=no_memory", "dataset=locomo_sample,locomo", *TINY[1:])
    output = ended(launch({**slurm, "MEMSYS_DATA": str(tmp_path)}, tmp_path, *sweep), code=3)
    assert "1 of 2 cells done, 1 failed" in output
    code, shown = status(tmp_path, *sweep)
    assert code == 3 and "locomo10.json" in shown and "memsys data" in shown
    (failed,) = [ticket for ticket in tickets(tmp_path) if ticket["state"] == "failed"]
    assert "locomo10.json" in failed["reason"] and Path(failed["log"]).is_file() and failed["log"] in shown


def test_what_slurm_refuses_is_said(slurm: Environment, tmp_path: Path) -> None:
    output = ended(launch(slurm, tmp_path, "memory=no_memory", "hydra.launcher.partition=nowhere", *TINY), code=2)
    assert "partition" in output and "Traceback" not in output
