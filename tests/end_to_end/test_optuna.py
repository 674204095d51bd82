"""A search with Optuna: what it calls best is what the runs of its trials say."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 3


def test_the_best_trial_is_the_run_with_the_highest_primary_metric(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "eval.run", "-m", "hydra/sweeper=optuna", f"hydra.sweeper.n_trials={TRIALS}",
            "hydra.sweeper.n_jobs=1", "hydra.sweeper.direction=maximize", "hydra.sweeper.sampler.seed=0",
            "memory=rag", "memory.k=choice(1,3,8,20)", "mode=retrieval_only", "embedder=hashing",
            "dataset=locomo_sample", "progress=lines",
            f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path / 'cache'}",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (tmp_path / "runs").rglob("optimization_results.yaml")
    best = yaml.safe_load(found.read_text(encoding="utf-8"))
    recall = {_depth(run.parent): _recall(run.parent) for run in (tmp_path / "runs").rglob("run.json")}
    assert len(recall) == TRIALS and len(set(recall.values())) == TRIALS, "the seed draws three depths that differ"
    depth = max(recall, key=recall.__getitem__)
    assert best == {"name": "optuna", "best_params": {"memory.k": depth}, "best_value": recall[depth]}


def _depth(run: Path) -> int:
    return int(json.loads((run / "run.json").read_text(encoding="utf-8"))["config"]["memory"]["k"])


def _recall(run: Path) -> float:
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return float(summary["metrics"]["overall"]["e_recall"]["mean"])
