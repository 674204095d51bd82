"""A sweep on a Ray of two workers, and the examples for SkyPilot and Kubernetes under their own rules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
#: SkyPilot wants other versions of what memsys has, and lies beside the environment of this test.
SKY = Path(f"{Path(sys.executable).parents[1]}-sky") / "bin" / "python"
TINY = ("dataset=locomo_sample", "embedder=hashing", "dataset.limit_sessions=1", "dataset.limit_questions=1",
        "backbone=smollm2_135m", "backbone.engine.threads=1", "score=false", "progress=lines")  # fmt: skip
LAUNCHER = ("hydra/launcher=ray_cluster", "hydra.launcher.sharing=all", "+hydra.launcher.ray.init.num_cpus=2",
            "+hydra.launcher.ray.init.include_dashboard=false")  # fmt: skip

pytestmark = [pytest.mark.clusters, pytest.mark.timeout(900)]


def test_two_workers_share_a_server_that_ends_with_the_sweep(tmp_path: Path) -> None:
    places = (f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path / 'cache'}", f"serving.folder={tmp_path / 'on'}")
    line = [sys.executable, "-m", "eval.run", "-m", *LAUNCHER, *places, *TINY, "memory=rag_quickstart,no_memory"]
    variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    for expected in ("1 servers wanted", "done, not started again"):
        done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout + done.stderr
    assert len(list(tmp_path.rglob("answers.jsonl"))) == 2
    assert len(list(tmp_path.rglob("llamacpp.log"))) == 1
    assert not list((tmp_path / "on").glob("*/server-*")), "the server ended with the sweep"


def test_the_job_for_kubernetes_is_valid() -> None:
    import kubernetes_validate

    job = yaml.safe_load((EXAMPLES / "kubernetes_job.yaml").read_text(encoding="utf-8"))
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**job, "spec": {"containers": []}}, kubernetes_validate.latest_version())


@pytest.mark.parametrize(("change", "valid"), [("", True), ("gpus: 8\n", False)])
def test_the_task_for_skypilot_is_valid(change: str, valid: bool, tmp_path: Path) -> None:
    task = tmp_path / "task.yaml"
    task.write_text((EXAMPLES / "skypilot.yaml").read_text(encoding="utf-8") + change, encoding="utf-8")
    read = "import sys, sky; task = sky.Task.from_yaml(sys.argv[1]); print(task.name, *task.resources)"
    variables = {**os.environ, "HOME": str(tmp_path), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    done = subprocess.run(
        [SKY, "-c", read, task], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode == 0) == valid, done.stderr
    assert not valid or ("memsys" in done.stdout and "A100" in done.stdout)
