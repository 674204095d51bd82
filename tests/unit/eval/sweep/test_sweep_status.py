"""How cells stand, read from their files; which cells a launcher starts, and how it sorts them."""

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eval.running.server_requests import ask_for_servers, outside_job
from eval.runs.files import write_json
from eval.runs.run_json import RunRecord, Status
from eval.sweep import local_servers, servers
from eval.sweep.cells import Composer, SweepCell
from eval.sweep.job_status import Submission, TicketWriter, read_submission, read_ticket, write_submission
from eval.sweep.launching import LaunchGroup, all_cells, open_cells, portions, queued_cells
from eval.sweep.local_servers import device_shares
from eval.sweep.servers import ServerRequest, queued_jobs, request_servers
from eval.sweep.status import cell_status, counted, sweep_status
from memsys.errors import BackboneError, ConfigError, MemsysError, RunDirectoryError
from memsys.llm.engines.registry import Registry, ServerRecord


def cell(tmp_path: Path, *overrides: str) -> SweepCell:
    return Composer().cell(["dataset=locomo_sample", f"runs_dir={tmp_path}", *overrides])


def finish(path: Path, status: Status, **changes: Any) -> None:
    """A run's record of a run of 34 questions."""
    record = RunRecord(
        run_id=path.name,
        experiment="adhoc",
        seed=0,
        mode="answers",
        config={},
        identity={},
        data={"questions": 34},
        model={},
        commit=None,
        dirty=None,
        packages={},
        hardware={},
        started="2026-01-01T00:00:00+00:00",
        status=status,
    )
    write_json(path / "run.json", {**asdict(record), **changes})


def stale(path: Path) -> None:
    os.utime(path, (time.time() - 600,) * 2)


@pytest.mark.usefixtures("unsigned")
def test_a_cell_from_new_to_done(tmp_path: Path) -> None:
    one = cell(tmp_path)
    assert cell_status(one).state == "new"
    write_submission(one.folder, one.key, Submission("17_0", "job.err"))
    waiting = cell_status(one)
    assert (waiting.state, waiting.reason, waiting.log) == ("waiting", "job 17_0", "job.err")
    with TicketWriter(one.folder, one.key, one.overrides) as ticket:
        assert cell_status(one).state == "running"
        finish(one.path, "complete")
        ticket.end("done")
    assert cell_status(one).state == "done"


def test_an_error_leaves_its_reason_and_passes_on(tmp_path: Path) -> None:
    one = cell(tmp_path)
    with pytest.raises(BackboneError), TicketWriter(one.folder, one.key, one.overrides):
        raise BackboneError("the server is gone")
    assert (cell_status(one).state, cell_status(one).reason) == ("failed", "the server is gone")
    with pytest.raises(ZeroDivisionError), TicketWriter(one.folder, one.key, one.overrides):
        _ = 1 // 0
    assert "ZeroDivisionError" in cell_status(one).reason
    with pytest.raises(SystemExit), TicketWriter(one.folder, one.key, one.overrides):
        raise SystemExit(-1)
    assert cell_status(one).state == "stopped" and "signal" in cell_status(one).reason


def test_a_job_that_is_silent_counts_as_killed(tmp_path: Path) -> None:
    one = cell(tmp_path)
    finish(one.path, "running")
    with TicketWriter(one.folder, one.key, one.overrides):
        path = one.folder / f"{one.key}.json"
        assert cell_status(one).state == "running"
        stale(path)
        status = cell_status(one)
        assert status.state == "stopped" and "no heartbeat" in status.reason
        assert status.ticket is not None and str(status.ticket.process) in status.reason


def test_a_cell_whose_process_was_killed_a_moment_ago_is_free(tmp_path: Path) -> None:
    one = cell(tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with TicketWriter(one.folder, one.key, one.overrides):
        path = one.folder / f"{one.key}.json"
        ticket = json.loads(path.read_text())
        assert cell_status(one).state == "running"
        write_json(path, {**ticket, "process": ended.pid})
        assert cell_status(one).state == "stopped"
        write_json(path, {**ticket, "process": ended.pid, "host": "another"})
        assert cell_status(one).state == "running", "process ids of other machines say nothing here"
        write_json(path, {**ticket, "process": ended.pid, "job": "17"})
        assert cell_status(one).state == "running", "the batch system knows better"


def test_a_cell_that_was_submitted_again_waits_whatever_its_last_job_said(tmp_path: Path) -> None:
    one = cell(tmp_path)
    with pytest.raises(BackboneError), TicketWriter(one.folder, one.key, one.overrides):
        raise BackboneError("gone")
    stale(one.folder / f"{one.key}.json")
    write_submission(one.folder, one.key, Submission("18", "log"))
    assert cell_status(one).state == "waiting"


def test_an_incomplete_run_says_which_conversation_failed(tmp_path: Path) -> None:
    one = cell(tmp_path)
    finish(one.path, "incomplete", problems=["conv-1: backbone failed 5 times"])
    (one.path / "answers.jsonl").write_text("{}\n{}\n")
    status = cell_status(one)
    assert status.state == "failed" and "backbone failed" in status.reason and status.answered == (2, 34)


def test_missing_data_and_wrong_settings_are_reasons(tmp_path: Path) -> None:
    missing = cell(tmp_path, "dataset=locomo", f"dataset.data_dir={tmp_path}")
    assert cell_status(missing).state == "failed" and "locomo10.json" in cell_status(missing).reason
    wrong = cell(tmp_path, "memory.k=0")
    assert cell_status(wrong).state == "failed" and "memory.k" in cell_status(wrong).reason
    with pytest.raises(ConfigError, match=r"memory\.k"):
        wrong.valid_plan()


def test_where_things_lie_and_how_they_are_served_is_no_other_cell(tmp_path: Path) -> None:
    plain = cell(tmp_path)
    launched = cell(tmp_path, "cache_shared=true", "serving.shared=true", "serving.wait_s=1", "progress=lines")
    assert plain.key == launched.key and plain.path == launched.path
    assert cell(tmp_path, "seed=1").key != plain.key


def test_cells_of_a_sweep_in_the_order_of_hydra(tmp_path: Path) -> None:
    sweep = Composer().sweep(["memory=rag,no_memory", "seed=0,1", f"runs_dir={tmp_path}"])
    names = [(each.valid_plan().memory.name, each.valid_plan().seed) for each in sweep.cells]
    assert names == [("rag", 0), ("rag", 1), ("no_memory", 0), ("no_memory", 1)]
    assert counted(sweep_status(sweep))["new"] == 4


@pytest.mark.usefixtures("unsigned")
def test_finished_and_running_cells_are_not_started_again(tmp_path: Path) -> None:
    settings = ["dataset=locomo_sample", f"runs_dir={tmp_path}"]
    done, running, failed, new = (cell(tmp_path, f"seed={seed}") for seed in range(4))
    finish(done.path, "complete")
    finish(failed.path, "incomplete")
    with TicketWriter(running.folder, running.key, running.overrides):
        cells = all_cells([[*settings, f"seed={seed}"] for seed in range(4)])
        opened = open_cells(cells)
        write_submission(failed.folder, failed.key, Submission("9_1", ""))
        jobs, others = queued_cells(cells, {"9_1", "10"})
    assert jobs == ["9_1"] and [each.key for each in others] == [done.key, running.key, new.key]
    assert [each.key for each in opened] == [failed.key, new.key]


def test_cells_are_sorted_by_the_servers_they_need(tmp_path: Path) -> None:
    vllm = [cell(tmp_path, "backbone=qwen3_06b", f"memory={name}") for name in ("rag", "amem")]
    other = cell(tmp_path, "backbone=llama32_1b")
    wide = cell(tmp_path, "backbone=qwen3_14b", "backbone.engine.tensor_parallel_size=2", "backbone.engine.replicas=3")
    embedded, hosted = cell(tmp_path), cell(tmp_path, "backbone=gpt4o_mini")
    timed = cell(tmp_path, "backbone=qwen3_06b", "timing=latency")
    urls = ("backbone=qwen3_06b", "backbone/engine=vllm_attached", "backbone.engine.urls=[http://a:1]")
    attached = cell(tmp_path, *urls)
    retrieval = cell(tmp_path, "mode=retrieval_only")
    found = portions([*vllm, other, wide, embedded, hosted, timed, attached, retrieval], "vllm")
    assert [(len(each.cells), each.shared, each.gpus, each.replicas) for each in found] == [
        (2, True, 1, 1), (1, True, 1, 1), (1, True, 2, 3), (4, False, 0, 1), (1, False, 1, 1)
    ]  # fmt: skip
    assert [each.shared for each in portions([*vllm, embedded], "none")] == [False, False]
    assert [each.shared for each in portions([embedded], "all")] == [True]
    with pytest.raises(ConfigError, match="vllm, all, none"):
        portions([embedded], "some")


@pytest.mark.parametrize(
    ("devices", "gpus", "replicas", "shares"),
    [
        ("0,1,2,3", 1, 2, ["0", "1"]),
        ("4,5,6,7", 2, 2, ["4,5", "6,7"]),
        ("0,1,2", 2, 2, ["0,1"]),
        ("0", 2, 1, ["0"]),
        ("", 1, 3, [None]),
    ],
)
def test_servers_of_one_machine_share_its_gpus(
    monkeypatch: pytest.MonkeyPatch, devices: str, gpus: int, replicas: int, shares: list[str | None]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert device_shares(LaunchGroup(shared=True, gpus=gpus, replicas=replicas)) == shares


def test_no_gpu_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(local_servers.shutil, "which", lambda name: None)
    assert device_shares(LaunchGroup(shared=True, gpus=1)) == [None]


def test_a_new_job_hears_nothing_of_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_MEM_PER_CPU", "SBATCH_PARTITION", "SUBMITIT_EXECUTOR", "SLURM_CONF", "HF_HOME"):
        monkeypatch.setenv(name, "x")
    kept = outside_job()
    assert kept["SLURM_CONF"] == kept["HF_HOME"] == "x"
    assert not [name for name in kept if name.startswith(("SLURM_", "SBATCH_", "SUBMITIT_")) and name != "SLURM_CONF"]


_TOOL = """#!/bin/sh
echo "$0 $*" >> {calls}
case "$0" in
*sbatch) n=$(($(grep -c sbatch {calls}) + 40)); echo $n >> {queue}; echo "Submitted batch job $n" ;;
*squeue) sed 's/$/ R None/' {queue} ;;
esac
"""


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm's commands as scripts; the file ``queue`` that is returned holds what squeue shows."""
    tools, queue = tmp_path / "bin", tmp_path / "queue"
    tools.mkdir()
    queue.touch()
    for name in ("sbatch", "squeue", "srun", "scontrol", "sacct"):
        tool = tools / name
        tool.write_text(_TOOL.format(calls=tmp_path / "calls", queue=queue))
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return queue


def test_servers_are_submitted_once_and_again_when_they_are_gone(
    tmp_path: Path, fake_slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(tmp_path / "group")
    request = ServerRequest(["backbone=qwen3_06b"], 2, {"timeout_min": 5, "mem_gb": 1}, str(tmp_path / "logs/%j"), True)
    assert request_servers(registry, request) == ["41", "42"]
    assert request_servers(registry, request) == ["41", "42"]
    fake_slurm.write_text("42\n")
    ask_for_servers(registry.folder)
    assert json.loads((registry.folder / "jobs.json").read_text()) == ["41", "42"], "this is not a job of Slurm's"
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    ask_for_servers(registry.folder)
    assert json.loads((registry.folder / "jobs.json").read_text()) == ["42", "43"]
    ask_for_servers(registry.folder)
    assert json.loads((registry.folder / "jobs.json").read_text()) == ["42", "43"]


def test_a_server_is_remembered_though_slurm_refuses_the_next(tmp_path: Path, fake_slurm: Path) -> None:
    sbatch = tmp_path / "bin" / "sbatch"
    refusal = "[ -s {queue} ] && {{ echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1; }}\n"
    first, _, rest = sbatch.read_text().partition("\n")
    sbatch.write_text(f"{first}\n{refusal.format(queue=fake_slurm)}{rest}")
    registry = Registry(tmp_path / "group")
    request = ServerRequest(["backbone=qwen3_06b"], 2, {"timeout_min": 5}, str(tmp_path / "logs/%j"), True)
    with pytest.raises(ConfigError, match="QOSMaxSubmitJobPerUserLimit"):
        request_servers(registry, request)
    assert json.loads((registry.folder / "jobs.json").read_text()) == fake_slurm.read_text().split()


def test_a_disk_without_locks_is_refused_by_name(
    tmp_path: Path, fake_slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(file: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("eval.sweep.servers.fcntl.lockf", no_locks)
    request = ServerRequest(["backbone=qwen3_06b"], 1, {}, str(tmp_path / "logs/%j"), False)
    with pytest.raises(MemsysError, match=r"No locks available.*serving\.folder"):
        request_servers(Registry(tmp_path / "group"), request)


def test_servers_for_other_machines_are_submitted_beside_one_on_the_loopback_address(
    tmp_path: Path, fake_slurm: Path
) -> None:
    registry = Registry(tmp_path / "group")
    request = ServerRequest(["backbone=qwen3_06b"], 1, {"timeout_min": 5}, str(tmp_path / "logs/%j"), False)
    own = ServerRecord(["http://127.0.0.1:8000/v1"], "stub", {}, "login", 1, "")
    with registry.published("own", own):
        assert request_servers(registry, replace(request, loopback=True)) == []
        assert len(request_servers(registry, request)) == 1
    with registry.published("reachable", replace(own, urls=["http://node7:8000/v1"])):
        (registry.folder / "jobs.json").unlink()
        assert request_servers(registry, request) == []


def test_without_slurm_or_its_answer_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MemsysError, match="hydra/launcher=local"):
        queued_jobs()
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setattr(servers, "SUBMIT_SECONDS", 0.2)
    with pytest.raises(MemsysError, match="has not answered"):
        queued_jobs()


def test_a_job_that_left_the_queue_before_it_began_does_not_wait_any_longer(tmp_path: Path, fake_slurm: Path) -> None:
    sweep = Composer().sweep(["dataset=locomo_sample", "seed=0,1", f"runs_dir={tmp_path}"])
    for number, one in enumerate(sweep.cells):
        write_submission(one.folder, one.key, Submission(f"7_{number}", "job.err"))
    fake_slurm.write_text("7_0\n")
    waiting, gone = sweep_status(sweep)
    assert waiting.state == "waiting"
    assert (gone.state, gone.log) == ("stopped", "job.err") and "7_1" in gone.reason
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert [each.state for each in sweep_status(sweep)] == ["waiting"] * 2, "nobody knows better"


def test_nobody_asks_for_servers_that_no_launcher_has_described(
    tmp_path: Path, fake_slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    ask_for_servers(tmp_path)
    assert not (tmp_path / "calls").exists()


def test_a_ticket_says_what_slurm_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_RESTART_COUNT", "2"),
                        ("CUDA_VISIBLE_DEVICES", "1")):  # fmt: skip
        monkeypatch.setenv(name, value)
    with TicketWriter(tmp_path, "key", ["seed=1"]):
        found = read_ticket(tmp_path, "key")
    assert found is not None
    ticket, alive = found
    assert alive and (ticket.job, ticket.restarts, ticket.devices) == ("7_3", 2, "1")
    assert replace(ticket, state="done").overrides == ["seed=1"]


@pytest.mark.parametrize("content", ['{"state": "running"}', "[]", "{"])
def test_a_ticket_of_another_version_is_one_message(tmp_path: Path, content: str) -> None:
    """It was a traceback of ``status`` and of every launcher."""
    for name, read in (("key.json", read_ticket), ("key.job", read_submission)):
        (tmp_path / name).write_text(content)
        with pytest.raises(RunDirectoryError, match=rf"{name} does not fit this version \(.*\); delete it"):
            read(tmp_path, "key")
