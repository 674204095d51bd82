"""Real servers as memories, with a real model: two of MCP from their registries, and the example behind HTTP."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from baselines.external.config import McpConfig
from baselines.external.mcp_server import McpStore
from baselines.external.store import Item
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from memsys.errors import MemoryProtocolError
from memsys.vocabulary import Turn

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


SERVER = """
import sys
from mcp.server.mcpserver import MCPServer

server, held = MCPServer("texts"), []


@server.tool()
def put(text: str) -> str:
    held.append(text)
    return "kept"


@server.tool()
def get(query: str, k: int) -> list[str]:
    asked = set(query.lower().split())
    return [text for text in held if asked & set(text.lower().split())][:k]


server.run("streamable-http", port=int(sys.argv[1]), stateless_http=sys.argv[2] == "stateless")
"""


@contextmanager
def started(file: Path, port: int, kind: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, file, str(port), kind], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("kind", "message"),
    [("stateless", "finds nothing for the first text that was written"), ("sessions", "no longer knows this session")],
)
def test_a_server_by_url_that_is_started_again_empty_stops_the_run(kind: str, message: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "server.py").write_text(SERVER)
    plan = compose_plan(
        [
            "memory=mcp", "mode=retrieval_only", f"memory.url=http://127.0.0.1:{port}/mcp", "memory.timeout=20",
            "memory.write_tool=put", "memory.write_arguments={text: '{text}'}",
            "memory.search_tool=get", "memory.search_arguments={query: '{query}', k: '{k}'}",
        ]
    )  # fmt: skip
    assert isinstance(plan.memory, McpConfig)
    store = McpStore(plan.memory, cast(Any, SimpleNamespace(llm=None)))
    turn = Turn("t1", "s1", "Ann", "My cat is Pixel.", "5 January 2024")

    async def use() -> None:
        with started(tmp_path / "server.py", port, kind):
            await store.open({})
            await store.add(Item("t1", (turn,), (turn.text,), "Ann"))
            assert [one.text for one in await store.search("a cat", 3)] == [turn.text]
        with started(tmp_path / "server.py", port, kind):
            try:
                await store.search("a cat", 3)
            finally:
                await store.close()

    with pytest.raises(MemoryProtocolError, match=message):
        asyncio.run(use())
