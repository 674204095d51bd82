"""A memory system of somebody else that does not keep the protocol gets one sentence that names it."""

from pathlib import Path
from typing import Any

import pytest

from baselines.rag.memory import RagMemory
from eval.results.frame import Skipped, read_run
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.runs.load import load_json
from memsys import open_memory
from memsys.errors import MemoryProtocolError
from memsys.vocabulary import Hit, Retrieval

QUICK = ("memory=bm25_turn", "mode=retrieval_only", "embedder=hashing", "dataset.limit_conversations=1",
         "dataset.limit_questions=2", "score=false")  # fmt: skip


def message(tmp_path: Path) -> str:
    """What a run says that is refused."""
    with pytest.raises(MemoryProtocolError) as raised:
        run_experiment(compose_plan([*QUICK, f"run_dir={tmp_path / 'run'}"]))
    return str(raised.value)


def test_a_missing_method_is_named_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an ``AttributeError`` after the whole conversation was written, with all calls paid."""

    async def write(self: object, unit: object, prepared: object) -> None:
        raise AssertionError("a call was paid")

    monkeypatch.setattr(RagMemory, "write", write)
    monkeypatch.delattr(RagMemory, "state")
    assert message(tmp_path).startswith("memory=bm25_turn: RagMemory lacks state; a memory system has all methods")


def test_a_method_that_is_not_async_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``object NoneType can't be used in 'await' expression`` named nobody."""
    monkeypatch.setattr(RagMemory, "write", lambda self, unit, prepared: None)
    assert message(tmp_path) == "write() of RagMemory returned None; it must be written with `async def`"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "retrieve() returned None; it must return a memsys.Retrieval"),
        ([], "retrieve() returned []; it must return a memsys.Retrieval"),
        (["x" * 200], f"retrieve() returned ['{'x' * 98} ...; it must return a memsys.Retrieval"),
        (Retrieval((), None), "the context is None; it must be a text"),  # type: ignore[arg-type]
        (Retrieval(("x",), ""), "hit 1 is 'x'; it must be a memsys.Hit"),  # type: ignore[arg-type]
        (Retrieval((Hit("x", 0.0, "D1:3", "m"),), ""), "turn_ids of hit 1 are 'D1:3'; they must be a tuple of ids"),
        (Retrieval((Hit("x", 0.0, ("zz",), "m"),), ""), "hit 1 says that it comes from turn 'zz'"),
    ],
)  # fmt: skip
def test_what_no_run_can_store_or_score_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Any, said: str
) -> None:
    """A hit of an unknown turn counted as missed evidence, and nothing said so."""

    async def retrieve(self: object, query: str) -> Any:
        return given

    monkeypatch.setattr(RagMemory, "retrieve", retrieve)
    found = message(tmp_path)
    assert found.startswith("memory=bm25_turn, question sample-1") and said in found


def test_a_state_that_no_snapshot_can_hold_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RagMemory, "state", lambda self: {"notes": [{"a": float("nan"), "b": {1, 2}}]})
    assert message(tmp_path).startswith("memory.notes[0].b={1, 2} cannot be kept in a snapshot")


def test_a_run_that_failed_says_with_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It called itself interrupted, as one that a signal stopped, and whoever left it out did so without the error."""

    async def retrieve(self: object, query: str) -> Any:
        return [f"{tmp_path / 'run'}/notes"]

    monkeypatch.setattr(RagMemory, "retrieve", retrieve)
    message(tmp_path)
    record = load_json(tmp_path / "run" / "run.json")
    (problem,) = record["problems"]
    assert record["status"] == "incomplete" and problem.startswith("memory=bm25_turn, question sample-1")
    assert "retrieve() returned ['notes']; it must return a memsys.Retrieval" in problem  # no place of this machine
    left_out = read_run(tmp_path / "run")
    assert isinstance(left_out, Skipped)
    assert left_out.reason.startswith(f"not complete (incomplete: {problem}); the same command resumes it")


def test_of_a_fault_in_foreign_code_the_class_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def retrieve(self: object, query: str) -> Any:
        raise KeyError("a private text")

    monkeypatch.setattr(RagMemory, "retrieve", retrieve)
    with pytest.raises(KeyError):
        run_experiment(compose_plan([*QUICK, f"run_dir={tmp_path / 'run'}"]))
    record = load_json(tmp_path / "run" / "run.json")
    (problem,) = record["problems"]
    assert record["status"] == "incomplete" and "failed with KeyError; the first is question sample-1" in problem


def test_the_python_interface_refuses_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def retrieve(self: object, query: str) -> Any:
        return Retrieval((Hit("x", 0.0, ("zz",), "m"),), "")

    monkeypatch.setattr(RagMemory, "retrieve", retrieve)
    with open_memory("bm25_turn", backbone=None, embedder="hashing") as memory:
        memory.add([("Ann", "My cat is Pixel.")])
        with pytest.raises(MemoryProtocolError, match="turn 'zz'"):
            memory.retrieve("What is the cat called?")
