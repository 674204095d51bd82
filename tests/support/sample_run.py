"""A real run of a few questions without a model."""

from pathlib import Path

from eval.run import run_one
from eval.running.composed import compose_plan


def retrieval_run(folder: Path, memory: str = "rag", *overrides: str) -> Path:
    """Run a memory over six questions of the sample, retrieval only; returns the run directory."""
    plan = compose_plan(
        [f"memory={memory}", "embedder=hashing", "mode=retrieval_only", "dataset.limit_questions=6",
         f"run_dir={folder / memory}", f"cache_dir={folder / 'cache'}", *overrides]
    )  # fmt: skip
    path, code = run_one(plan)
    assert code == 0
    return Path(path)
