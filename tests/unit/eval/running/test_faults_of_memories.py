"""A bug in a memory system is one traceback, whatever it stops."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment

QUICK = ("memory=bm25_turn", "mode=retrieval_only", "embedder=hashing", "dataset.limit_conversations=1",
         "dataset.limit_questions=5", "score=false")  # fmt: skip


def shown(tmp_path: Path) -> str:
    """What Python prints of a run that fails."""
    with pytest.raises(NameError) as raised:
        run_experiment(compose_plan([*QUICK, f"run_dir={tmp_path / 'run'}"]))
    return "".join(traceback.format_exception(raised.value))


def test_a_bug_that_every_question_meets_is_one_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a group of as many tracebacks, of 255 lines."""

    async def retrieve(self: object, query: str) -> Any:
        return undefined  # type: ignore[name-defined]  # noqa: F821

    monkeypatch.setattr("baselines.rag.memory.RagMemory.retrieve", retrieve)
    text = shown(tmp_path)
    assert text.count("Traceback") == text.count("NameError: name") == 1 and "ExceptionGroup" not in text
    assert text.splitlines()[-1].startswith("5 questions failed with NameError; the first is question sample-1")


def test_a_bug_in_writing_names_the_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(self: object, unit: object, prepared: object) -> Any:
        return undefined  # type: ignore[name-defined]  # noqa: F821

    monkeypatch.setattr("baselines.rag.memory.RagMemory.write", write)
    text = shown(tmp_path)
    assert text.count("Traceback") == 1
    assert text.splitlines()[-1] == "1 conversation failed with NameError; the first is conversation sample-1"
