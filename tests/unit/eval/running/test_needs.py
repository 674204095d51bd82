"""What a run lacks is said before its folder is made and before anything is loaded."""

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.running.preflight import check_memory_has_model
from memsys.errors import AssetError, ConfigError, MemsysError

QUICK = ("embedder=hashing", "dataset.limit_conversations=1", "dataset.limit_questions=2", "score=false")
RETRIEVAL = (*QUICK, "mode=retrieval_only")
#: Presets that search without a model, and others that ask one.
MODEL_FREE = {"bm25_turn", "hybrid_turn", "no_memory", "oracle", "rag", "gated"}
ASKING = {"clag", "gam", "lightmem", "mem0", "memfly", "memgpt", "memorybank", "memoryos", "nemori", "package_amem",
          "readagent", "sage", "xmemory"}  # fmt: skip


def refused(tmp_path: Path, *overrides: str) -> MemsysError:
    """The error of a run that cannot begin, which must leave no folder."""
    plan = compose_plan([*overrides, f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}"])
    with pytest.raises(MemsysError) as raised:
        run_experiment(plan)
    assert not (tmp_path / "run").exists()
    return raised.value


@pytest.fixture
def nothing_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise AssertionError("something was loaded")

    monkeypatch.setattr("eval.running.experiment.load_models", load)


@pytest.mark.usefixtures("nothing_loads")
@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("memory=amem", "memory=amem calls the backbone (roles "),
        ("memory=gated_amem", "calls the backbone (roles "),
        ("memory=rag memory.query=keywords", "memory=rag calls the backbone (role keywords)"),
        ("memory=full_context", "memory=full_context counts tokens with the backbone's tokenizer"),
        ("memory=rag_chunk", "memory=rag_chunk counts tokens with the backbone's tokenizer"),
        (
            "memory=object memory.object=tests.support.outside_memory:Asking",
            "memory=object asks a model (its parameter base_url), and mode=retrieval_only has none: leave that out",
        ),
        (
            "memory=http memory.url=http://localhost:9 memory.lend_models=true",
            "memory=http asks a model (memory.lend_models=true)",
        ),
        ("memory=mcp memory.command=[serve,'{model}']", "memory=mcp asks a model ({model})"),
    ],
)
def test_a_memory_that_asks_a_model_is_refused_where_there_is_none(tmp_path: Path, memory: str, words: str) -> None:
    """The embedder was loaded first, and a folder stayed that said of itself that the same command resumes it."""
    error = refused(tmp_path, *memory.split(), *RETRIEVAL)
    assert isinstance(error, ConfigError) and words in str(error)


@pytest.mark.parametrize("name", sorted(MODEL_FREE | ASKING))
def test_a_preset_is_refused_only_where_it_asks_a_model(name: str) -> None:
    plan = compose_plan([f"memory={name}", *RETRIEVAL])
    with nullcontext() if name in MODEL_FREE else pytest.raises(ConfigError, match="calls the backbone"):
        check_memory_has_model(plan, plan.dataset.load())


@pytest.mark.usefixtures("nothing_loads")
@pytest.mark.parametrize("attached", [(), ("backbone=qwen3_06b", "backbone/engine=vllm_attached")])
def test_a_missing_key_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attached: tuple[str, ...]
) -> None:
    monkeypatch.delenv("MISSING_KEY", raising=False)
    server = (*attached, "backbone.engine.urls=[http://127.0.0.1:1]") if attached else ("backbone=gpt4o_mini",)
    error = refused(tmp_path, "memory=rag", *QUICK, *server, "backbone.engine.api_key_env=MISSING_KEY")
    assert isinstance(error, ConfigError) and "MISSING_KEY" in str(error)


@pytest.mark.usefixtures("nothing_loads")
@pytest.mark.parametrize("second", [False, True])
def test_a_missing_model_file_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: bool) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "none"))
    server = ("backbone=endpoint", "backbone.model=m", "backbone.engine.base_urls=[http://127.0.0.1:1/v1]")
    asked = (
        (*server, "+backbone@second=smollm2_135m", "second_roles=[analyse]") if second else ("backbone=smollm2_135m",)
    )
    error = refused(tmp_path, "memory=amem", *QUICK, *asked)
    assert isinstance(error, AssetError) and "memsys models smollm2_135m" in str(error)


def test_a_wrong_setting_that_shows_late_is_no_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder said that the same command resumes it."""

    async def fail(*_: Any) -> None:
        await asyncio.sleep(0)
        raise ConfigError("memory=mine calls the backbone")

    monkeypatch.setattr("eval.running.runner.Runner._ingest", fail)
    plan = compose_plan(["memory=bm25_turn", *RETRIEVAL, f"run_dir={tmp_path / 'run'}"])
    with pytest.raises(ConfigError, match="calls the backbone"):
        run_experiment(plan)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (record["status"], record["problems"]) == ("incomplete", ["memory=mine calls the backbone"])
