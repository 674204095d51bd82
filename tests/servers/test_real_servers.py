"""Real servers of others: ``memsys probe`` finds out what each takes, and a run with those settings completes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_servers import ROOT, SERVERS_OF_OTHERS, Running, UnavailableError, running

pytestmark = [pytest.mark.servers, pytest.mark.real_model, pytest.mark.timeout(1800)]

#: What must be found, by the name in the record.
FOUND: dict[str, dict[str, Any]] = {
    "llama.cpp": {
        "structured": "json_schema", "forms": {"json_schema": "followed"}, "tools": "taken, none called", "usage": True,
        "thoughts": "none", "completions": True, "window": 4096, "prompt_cache": True, "refused": {},
    },
    "llama-cpp-python": {
        "structured": "json_object", "forms": {"json_schema": "refused", "json_object": "followed"}, "usage": True,
        "thoughts": "none", "completions": True, "window": None, "prompt_cache": False,
    },
    "vLLM": {
        "structured": "json_schema", "forms": {"json_schema": "followed"}, "tools": "refused", "usage": True,
        "thoughts": "none", "completions": True, "window": 4096, "prompt_cache": False,
    },
    "transformers serve": {
        "structured": "off", "forms": {"json_schema": "ignored", "json_object": "ignored"}, "usage": True,
        "thoughts": "none", "completions": True, "window": None, "refused": {},
    },
    "LiteLLM proxy": {
        "structured": "json_schema", "forms": {"json_schema": "followed"}, "usage": True, "thoughts": "none",
        "completions": True, "window": None, "refused": {},
    },
}  # fmt: skip
#: Settings that must follow.
CHOSEN: dict[str, dict[str, Any]] = {
    "llama.cpp": {"context_length": 4096},
    "llama-cpp-python": {"structured": "json_object"},
    "vLLM": {"context_length": 4096},
    "transformers serve": {"structured": "off"},
    "LiteLLM proxy": {},
}
QUESTIONS = 2
#: Environment variable with a server's key.
KEY = "REAL_SERVER_KEY"
_HEAD = ("server", "version", "limit of tokens", "JSON schema", "JSON object", "tools", "window", "raw prompts",
         "equal at 0", "prompt cache in usage", "at once", "settings chosen", "run")  # fmt: skip


@pytest.fixture(scope="module")
def table() -> Iterator[list[list[str]]]:
    """Rows of what was found, which ``build/servers.md`` has in the end."""
    rows: list[list[str]] = []
    yield rows
    lines = [_HEAD, ["---"] * len(_HEAD), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    path = ROOT / "build" / "servers.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{datetime.now(UTC).date().isoformat()}\n\n{text}\n", encoding="utf-8")


@pytest.mark.parametrize("name", FOUND)
def test_a_server_is_probed_and_a_run_completes(tmp_path: Path, table: list[list[str]], name: str) -> None:
    try:
        with running(name, tmp_path) as server:
            key = ["--key", KEY] if server.key else []
            said = memsys(tmp_path, server, "eval.probe", server.url, server.model, *key)
            record, calls, scores = run(tmp_path, server)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    (stored,) = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("results/cache/servers/*.json")]
    found, chosen = stored["found"], {one["name"]: one["chosen"] for one in record["servers"][0]["chosen"]}
    table.append(_row(name, found, chosen, record, scores))
    sys.stdout.write(said)
    assert {key: found[key] for key in FOUND[name]} == FOUND[name]
    assert chosen == CHOSEN.get(name, chosen)
    assert record["servers"][0]["found"] == found, "the run asked the server again"
    assert record["status"] == "complete" and record["counts"]["questions_done"] == QUESTIONS
    assert not record["adaptations"]
    assert {call["phase"] for call in calls} == {"retrieve", "answer"}  # key words as JSON, then the answer
    assert [call["outcome"] for call in calls if call["phase"] == "answer"] == ["answered"] * QUESTIONS
    assert all(call["prompt_tokens"] and not call["estimated"] for call in calls)
    assert len(scores) == QUESTIONS and all(0 <= row["metrics"]["f1_set"] <= 1 for row in scores)


def run(folder: Path, server: Running) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Run two questions, with key words for the search as JSON; returns ``run.json``, calls and scores."""
    key = [f"backbone.engine.api_key_env={KEY}"] if server.key else []
    memsys(
        folder, server, "eval.run", "memory=rag_quickstart", "memory.query=keywords", "reader=locomo",
        "reader.roles.default.max_tokens=24", "embedder=hashing", "dataset=locomo_sample", "use_cache=false",
        f"dataset.limit_questions={QUESTIONS}", "backbone=endpoint", f"backbone.model='{server.model}'",
        f"backbone.engine.base_urls=['{server.url}']", f"run_dir={folder / 'run'}", "progress=lines", *key,
    )  # fmt: skip
    calls, scores = (
        [json.loads(line) for line in (folder / "run" / f"{name}.jsonl").read_text("utf-8").splitlines()]
        for name in ("calls", "scores")
    )
    return json.loads((folder / "run" / "run.json").read_text("utf-8")), calls, scores


def memsys(home: Path, server: Running, *command: str) -> str:
    """Run a command of memsys whose results lie in ``home``; returns what it says."""
    environment = {**os.environ, "MEMSYS_HOME": str(home), "COLUMNS": "120", KEY: server.key}
    environment.setdefault("MEMSYS_MODELS", str(ROOT / "models"))
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _row(
    name: str, found: dict[str, Any], chosen: dict[str, Any], record: dict[str, Any], scores: list[Any]
) -> list[str]:
    limit = "max_tokens" if "max_tokens" not in found["refused"] else "max_completion_tokens"
    settings = ", ".join(f"`{key}={json.dumps(value)}`" for key, value in chosen.items())
    more = "" if found["pushed_back"] else " or more"
    return [
        name, SERVERS_OF_OTHERS[name].version(), f"`{limit}`", found["forms"].get("json_schema", "–"),
        found["forms"].get("json_object", "–"), found["tools"], str(found["window"] or "not stated"),
        _yes(found["completions"]), _yes(found["repeatable"]), _yes(found["prompt_cache"]),
        f"{found['in_flight']}{more}", settings or "none", f"{record['status']}, {len(scores)} answers scored",
    ]  # fmt: skip


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]
