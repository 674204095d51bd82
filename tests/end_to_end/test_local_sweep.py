"""Sweeps on this machine: cells side by side, shared calls paid once, failures reported, nothing run twice."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.runs.files import read_json_lines
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ("hydra/launcher=local", "hydra.launcher.n_jobs=2", "embedder=hashing", "score=false", "progress=lines")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with stub_server(delay=0.02) as address:
        yield address


def sweep(folder: Path, *overrides: str) -> tuple[int, str]:
    places = [f"{name}={folder / name}" for name in ("runs_dir", "cache_dir")]
    line = [
        sys.executable,
        "-m",
        "eval.run",
        "-m",
        *LAUNCHER,
        *places,
        f"serving.folder={folder / 'servers'}",
        *overrides,
    ]
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


@pytest.mark.real_model
def test_cells_share_one_embedded_server(tmp_path: Path) -> None:
    tiny = ("dataset=locomo_sample", "dataset.limit_sessions=1", "dataset.limit_questions=2", "serving.idle_s=60")
    code, output = sweep(
        tmp_path, *tiny, "memory=rag_quickstart,no_memory", "hydra.launcher.sharing=all", "backbone.engine.threads=1"
    )
    assert code == 0, output
    assert len(list(tmp_path.rglob("llamacpp.log"))) == 1
    assert not list((tmp_path / "servers").glob("*/server-*")), "the server ended with the sweep"
