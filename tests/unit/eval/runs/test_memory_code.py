"""The checksum of a memory system's source."""

import importlib
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from eval.runs.memory_code import _sources, memory_code
from tests.support.composing import memory_config


def test_a_system_has_its_own_and_a_gate_that_of_its_host_too() -> None:
    amem, gate = memory_config("amem"), memory_config("gated")
    assert memory_code(amem) == memory_code(memory_config("amem_small")) != memory_code(memory_config("clag"))
    assert memory_code(gate) != memory_code(getattr(gate, "host", None))


def test_of_many_programs_the_one_that_runs_counts() -> None:
    codes = {memory_code(memory_config(f"package_{name}")) for name in ("amem", "mem0", "langmem")}
    assert len(codes) == 3


@pytest.mark.parametrize(
    ("file", "counts"),
    [("other.py", True), ("prompts/note.txt", True), ("note.pyc", False), ("conf/reader/mine.yaml", False)],
)
def test_modules_and_prompts_of_a_plug_in_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, counts: bool
) -> None:
    folder = tmp_path / "some_memory"
    folder.mkdir()
    (folder / "__init__.py").write_text("class Config: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_memory", raising=False)
    config = importlib.import_module("some_memory").Config()
    before = memory_code(config)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("new")
    assert (memory_code(config) != before) == counts
    monkeypatch.delitem(sys.modules, "some_memory")


def test_a_worker_of_ones_own_and_the_versions_of_the_environment_count(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("class Worker: ...\n")
    config: Any = replace(cast(Any, memory_config("package_mem0")), worker=str(worker))
    codes = {memory_code(memory_config("package_mem0")), memory_code(config)}
    worker.write_text("class Worker: x = 1\n")
    assert len({*codes, memory_code(config)}) == 3
    assert config.requirements in set(_sources(Path(inspect.getfile(type(config))), config))


def test_what_was_typed_in_has_none() -> None:
    assert memory_code(type("Config", (), {"__module__": "__main__.nowhere"})()) is None
