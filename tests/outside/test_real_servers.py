"""Real servers as memories, with a real model: two of MCP from their registries, and the example behind HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".venv-packages"
MEMORY = PACKAGES / "outside-npm" / "node_modules" / ".bin" / "mcp-server-memory"
BASIC = PACKAGES / "outside-312" / "bin" / "basic-memory"
COMMON = [
    "dataset=locomo_sample", "dataset.limit_sessions=1", "dataset.limit_questions=2", "backbone=qwen25_coder_05b",
    "embedder=hashing", "use_cache=false", "progress=lines",
]  # fmt: skip

pytestmark = [pytest.mark.outside, pytest.mark.real_model, pytest.mark.timeout(1800)]  # two busy cores


def run(tmp_path: Path, *settings: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[float]]:
    """Run, and return the calls, the retrievals and the recalls at ten."""
    result = run_experiment(compose_plan([*COMMON, *settings, f"run_dir={tmp_path / 'run'}"]))
    assert result.complete
    calls, retrievals, scores = (
        [json.loads(line) for line in (result.path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("calls", "retrievals", "scores")
    )
    assert len([call for call in calls if call["phase"] == "answer"]) == len(retrievals) > 0
    return calls, retrievals, [row["metrics"]["recall@10"] for row in scores]


def test_the_tools_of_basic_memory_write_and_find(tmp_path: Path) -> None:
    folders = "{HOME: '{folder}', BASIC_MEMORY_HOME: '{folder}/notes', BASIC_MEMORY_CONFIG_DIR: '{folder}/config'}"
    _, retrievals, recall = run(
        tmp_path, "memory=mcp", "memory.unit=turn", f"memory.command=[{BASIC},mcp]", f"memory.environment={folders}",
        "memory.write_tool=write_note",
        "memory.write_arguments={title: '{key}', content: '{text}', directory: turns}",
        "memory.search_tool=search_notes",
        "memory.search_arguments={query: '{query}', output_format: json, page_size: '{k}'}",
    )  # fmt: skip
    assert all(hit["turn_ids"] for each in retrievals for hit in each["hits"])
    assert sum(recall) / len(recall) > 0.5


def test_a_model_is_offered_the_tools_of_the_knowledge_graph(tmp_path: Path) -> None:
    calls, _, _ = run(
        tmp_path, "memory=mcp", "memory.steps=1", "memory.roles.write.max_tokens=200", f"memory.command=[{MEMORY}]",
        "memory.environment={MEMORY_FILE_PATH: '{folder}/memory.jsonl'}", "dataset.limit_questions=1",
    )  # fmt: skip
    asked = [(call["role"], call["prompt_tokens"] > 1000) for call in calls if call["phase"] != "answer"]
    assert asked == [("write", True), ("search", True)]
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "conversations.jsonl").read_text().splitlines()]
    kept = row["statistics"]["memory"]
    assert kept["tools"] == 9
    assert kept["failed_calls"] == kept["unreadable_replies"] == 0  # each reply is a call that its tool accepts


def test_a_model_answers_from_a_server_behind_http(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "examples" / "memory_server.py"), "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            _, _, recall = run(tmp_path, "memory=http", f"memory.url={server.stdout.readline().strip()}")
        finally:
            server.terminate()
    assert sum(recall) / len(recall) > 0.5
