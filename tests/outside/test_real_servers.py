"""Real MCP servers as memories: `make test-outside` installs them from their package registries."""

import json
import shutil
from pathlib import Path

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".venv-packages"
MEMORY = PACKAGES / "outside-npm" / "node_modules" / ".bin" / "mcp-server-memory"
BASIC = PACKAGES / "outside-312" / "bin" / "basic-memory"
COMMON = [
    "memory=mcp", "memory.unit=turn", "dataset=locomo_sample", "dataset.limit_questions=6", "mode=retrieval_only",
    "embedder=hashing", "progress=lines",
]  # fmt: skip

pytestmark = pytest.mark.outside


def run(tmp_path: Path, *settings: str) -> dict[str, dict[str, float]]:
    result = run_experiment(compose_plan([*settings, f"run_dir={tmp_path / 'run'}"]))
    assert result.complete
    summary: dict[str, dict[str, float]] = json.loads((result.path / "summary.json").read_text())
    return summary


def scores(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line)["metrics"] for line in (folder / "run" / "scores.jsonl").read_text().splitlines()]


def test_the_knowledge_graph_server_stores_and_finds_by_words(tmp_path: Path) -> None:
    run(
        tmp_path, *COMMON, f"memory.command=[{MEMORY}]",
        "memory.environment={MEMORY_FILE_PATH: '{folder}/memory.jsonl'}", "memory.write_tool=create_entities",
        "memory.write_arguments={entities: [{name: '{key}', entityType: turn, observations: ['{text}']}]}",
        "memory.search_tool=search_nodes", "memory.search_arguments={query: Petrel}",
    )  # fmt: skip
    retrievals = [json.loads(line) for line in (tmp_path / "run" / "retrievals.jsonl").read_text().splitlines()]
    assert all(hit["turn_ids"] for each in retrievals for hit in each["hits"]) and retrievals[0]["hits"]


def test_basic_memory_finds_evidence(tmp_path: Path) -> None:
    folders = "{HOME: '{folder}', BASIC_MEMORY_HOME: '{folder}/notes', BASIC_MEMORY_CONFIG_DIR: '{folder}/config'}"
    run(
        tmp_path, *COMMON, f"memory.command=[{BASIC},mcp]", f"memory.environment={folders}",
        "memory.write_tool=write_note",
        "memory.write_arguments={title: '{key}', content: '{text}', directory: turns}",
        "memory.search_tool=search_notes",
        "memory.search_arguments={query: '{query}', output_format: json, page_size: '{k}'}",
    )  # fmt: skip
    recall = [row["recall@10"] for row in scores(tmp_path) if row.get("recall@10") is not None]
    assert recall and sum(recall) / len(recall) > 0.5


def test_a_small_model_is_offered_the_tools(tmp_path: Path) -> None:
    shared = [each for each in COMMON if not each.startswith(("mode=", "memory.unit"))]
    run(
        tmp_path, *shared, "backbone=smollm2_135m", "memory.steps=1", "dataset.limit_questions=2",
        f"memory.command=[{MEMORY}]", "memory.environment={MEMORY_FILE_PATH: '{folder}/memory.jsonl'}",
        "use_cache=false",
    )  # fmt: skip
    calls = [json.loads(line) for line in (tmp_path / "run" / "calls.jsonl").read_text().splitlines()]
    assert {"write", "search"} <= {call["role"] for call in calls}


def test_the_programs_are_there() -> None:
    assert shutil.which(str(MEMORY)) and shutil.which(str(BASIC)), "make test-outside installs them"
