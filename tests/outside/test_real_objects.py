"""Real objects of other projects as memories, over the models that memsys lends them."""

import json
from pathlib import Path
from typing import Any

import pytest

import memsys
from tests.outside import objects

SETTINGS = ["dataset.limit_sessions=1", "embedder=minilm", "progress=lines", "use_cache=false"]

pytestmark = [pytest.mark.outside, pytest.mark.timeout(1800)]  # real models on two busy cores


def measured(given: Any, folder: Path, *settings: str, **named: Any) -> tuple[Any, list[dict[str, Any]]]:
    result = memsys.evaluate(given, baselines=[], k=5, settings=[*SETTINGS, *settings, f"runs_dir={folder}"], **named)
    assert result.complete
    return result, [json.loads(line) for line in (result.path / "calls.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("given", [objects.langchain, objects.llama_index])
def test_vector_stores_find_the_evidence_with_the_run_s_embedder(given: Any, tmp_path: Path) -> None:
    result, calls = measured(given, tmp_path)
    assert not calls
    assert result.frame["recall@5"].mean() > 0.7


@pytest.mark.real_model
def test_mem0_asks_the_model_of_the_run(tmp_path: Path) -> None:
    limits = ["dataset.limit_questions=1", "memory.unit=session"]
    result, calls = measured(objects.mem0, tmp_path, *limits, backbone="qwen25_coder_05b")
    written = [call for call in calls if call["phase"] == "write" and call["role"] == "chat"]
    assert written and all(call["item"] == "item-1" and call["prompt_tokens"] > 100 for call in written)
    assert {call["phase"] for call in calls} >= {"write", "answer"}
    assert len(result.frame) == 1
