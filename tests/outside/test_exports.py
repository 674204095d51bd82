"""Exports that the projects they are for really read: Every Eval Ever's validator, and MTEB."""

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eval.export import main
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.runs.load import load_retrievals

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = ROOT / ".venv-packages" / "outside-312" / "bin" / "every_eval_ever"

pytestmark = pytest.mark.outside


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    settings = ["memory=bm25_turn", "dataset=locomo_sample", "mode=retrieval_only", "embedder=hashing"]
    return run_experiment(compose_plan([*settings, "progress=lines", f"run_dir={folder}"])).path


def test_every_eval_ever_accepts_the_record_without_a_warning(run: Path, tmp_path: Path) -> None:
    assert main([str(run), "--to", "every_eval_ever", "--out", str(tmp_path)]) == 0
    (record,) = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")]
    done = subprocess.run([VALIDATOR, "validate", record], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 0 warning-only" in done.stdout


def test_mteb_loads_the_task_and_computes_the_scores_of_the_result(run: Path, tmp_path: Path) -> None:
    import mteb
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

    assert main([str(run), "--to", "mteb", "--out", str(tmp_path)]) == 0
    spec = importlib.util.spec_from_file_location("exported_task", tmp_path / "task.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ranked = load_retrievals(run)

    class Replayed:
        """The run's rankings, as a model of MTEB."""

        mteb_model_meta = ModelMeta.create_empty(overwrites={"name": "memsys/bm25_turn", "revision": "1"})

        def index(self, *given: Any, **named: Any) -> None: ...

        def search(self, queries: Any, **named: Any) -> dict[str, dict[str, float]]:
            turns = {key: [turn for hit in ranked[key].hits for turn in hit.turn_ids] for key in queries["id"]}
            return {key: {turn: 1 / place for place, turn in enumerate(each, 1)} for key, each in turns.items()}

    (result,) = mteb.evaluate(Replayed(), module.make_task(), cache=None, overwrite_strategy="always").task_results  # type: ignore[arg-type]
    (computed,) = result.scores["test"]
    (path,) = (tmp_path / "results").rglob("*.json")
    (ours,) = TaskResult.from_disk(path).scores["test"]
    for name in ("ndcg_at_10", "recall_at_10", "recall_at_1", "ndcg_at_3", "mrr_at_10", "main_score"):
        assert ours[name] == pytest.approx(computed[name], abs=1e-4), name
    assert 0.1 < ours["ndcg_at_10"] < 1.0
