"""Sweeps on this machine: cells side by side, shared calls paid once, failures reported, nothing run twice."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.runs.files import read_json_lines
from memsys.llm.engines.process import running_members
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ("hydra.launcher.n_jobs=2", "embedder=hashing", "score=false", "progress=lines")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with stub_server(delay=0.02) as address:
        yield address


def command(folder: Path, *overrides: str) -> list[str]:
    places = [f"{name}={folder / name}" for name in ("runs_dir", "cache_dir")]
    servers = f"serving.folder={folder / 'servers'}"
    return [sys.executable, "-m", "eval.run", "-m", *LAUNCHER, *places, servers, *overrides]


def eventually(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def sweep(folder: Path, *overrides: str) -> tuple[int, str]:
    line = command(folder, "hydra/launcher=local", *overrides)
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout + done.stderr


def ledger(folder: Path, system: str) -> list[dict[str, Any]]:
    (path,) = (folder / "runs_dir" / "adhoc").glob(f"{system}-*/calls.jsonl")
    return list(read_json_lines(path))


def test_systems_that_run_side_by_side_pay_what_they_share_once(url: str, tmp_path: Path) -> None:
    cells = ("dataset=locomo_sample", "memory=amem_quickstart,clag_quickstart", *attached(url))
    code, output = sweep(tmp_path, *cells)
    assert code == 0, output
    calls = ledger(tmp_path, "amem_quickstart") + ledger(tmp_path, "clag_quickstart")
    asked = Counter(call["request_hash"] for call in calls)
    paid = Counter(call["request_hash"] for call in calls if not call["cache_hit"])
    assert set(paid) == set(asked) and set(paid.values()) == {1}
    assert sum(call["role"] == "analyse" and call["cache_hit"] for call in calls) == 73
    code, output = sweep(tmp_path, *cells)
    assert code == 0 and output.count("done, not started again") == 2


def test_a_failing_cell_is_reported_and_the_others_run(url: str, tmp_path: Path) -> None:
    code, output = sweep(
        tmp_path, "dataset=locomo_sample", "dataset.limit_questions=2", "memory=rag", "memory.k=0,3", *attached(url)
    )
    assert code == 3 and "Traceback" not in output
    assert "memory.k" in output and "1 of 2 cells done, 1 failed" in output


@pytest.mark.parametrize("launcher", [["hydra/launcher=local", "hydra.launcher.n_jobs=2"], []])
def test_a_sweep_ends_with_presets_of_the_user(tmp_path: Path, launcher: list[str]) -> None:
    """Its cells were run, or not even that, and then it said that there is no such preset."""
    (tmp_path / "conf" / "memory").mkdir(parents=True)
    (tmp_path / "conf" / "memory" / "mine.yaml").write_text("defaults: [bm25_turn, _self_]\nname: mine", "utf-8")
    places = [f"{name}={tmp_path / name}" for name in ("runs_dir", "cache_dir")]
    line = [sys.executable, "-m", "eval.run", "-m", "--config-dir", str(tmp_path / "conf"), *launcher, *places]
    line += ["mode=retrieval_only", "dataset=locomo_sample", "embedder=hashing", "memory=mine,bm25_turn"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs_dir" / "adhoc" / "comparison").is_dir()


@pytest.mark.real_model
def test_cells_share_one_embedded_server(tmp_path: Path) -> None:
    tiny = ("dataset=locomo_sample", "dataset.limit_sessions=1", "dataset.limit_questions=2", "serving.idle_s=60")
    code, output = sweep(
        tmp_path, *tiny, "memory=rag_quickstart,no_memory", "hydra.launcher.sharing=all", "backbone.engine.threads=1"
    )
    assert code == 0, output
    assert len(list(tmp_path.rglob("llamacpp.log"))) == 1
    assert not list((tmp_path / "servers").glob("*/server-*")), "the server ended with the sweep"


def test_eight_gpus_of_one_machine_have_a_server_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers are stand-ins on the CPU that say which GPU each was given."""
    standin = tmp_path / "python"
    standin.write_text(
        '#!/bin/bash\nwhile [ $# -gt 0 ]; do [ "$1" = --port ] && port=$2; shift; done\n'
        f'cd "{ROOT}"\nexec "{sys.executable}" -m tests.support.stub_server --delay 0.2 --port "$port" '
        f'--log "{tmp_path}/gpu-$CUDA_VISIBLE_DEVICES.log"\n'
    )
    standin.chmod(0o755)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(8))))
    code, output = sweep(
        tmp_path, "dataset=locomo_sample", "memory=amem_quickstart,clag_quickstart,rag_quickstart", "embedder=hashing",
        "backbone=smollm2_135m_vllm", f"backbone.engine.model={model}", f"backbone.engine.interpreter={standin}",
        "backbone.engine.replicas=8", "backbone.token_counter=characters", "dataset.limit_questions=8",
    )  # fmt: skip
    assert code == 0, output
    started = {path.stem for path in (tmp_path / "servers").rglob("serve-*.log")}
    assert len(started) == 8, output
    asked = {path.stem: path.read_text().count("\n") for path in tmp_path.glob("gpu-*.log")}
    assert len(asked) > 1 and set(asked) <= {f"gpu-{number}" for number in range(8)}, asked
    assert not list((tmp_path / "servers").glob("*/server-*")), "the servers ended with the sweep"


@pytest.mark.parametrize("launcher", ["local", "joblib"])
@pytest.mark.parametrize("fatal", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_cells_end_with_their_sweep(tmp_path: Path, fatal: signal.Signals, launcher: str) -> None:
    # Both systems write 73 turns, one call after the other: neither can end before the other has begun.
    with stub_server(delay=0.5) as slow:
        cells = ("dataset=locomo_sample", "memory=amem_quickstart,clag_quickstart", *attached(slow))
        line = command(tmp_path, f"hydra/launcher={launcher}", *cells)
        process = subprocess.Popen(
            line,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # tests may ignore it
        )
        try:
            assert eventually(lambda: len(list(tmp_path.rglob("calls.jsonl"))) == 2, 60), "the cells did not begin"
            assert len(running_members(process.pid)) >= 3, "the sweep and two cells"
            process.send_signal(fatal)
            process.wait(timeout=30)
            assert eventually(lambda: not running_members(process.pid), 10), "cells live on"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    statuses = [json.loads(path.read_text())["status"] for path in tmp_path.rglob("run.json")]
    assert "complete" not in statuses, "a run ended before its sweep was killed"
