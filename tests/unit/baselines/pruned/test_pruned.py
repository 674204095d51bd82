"""RAG with pruned passages, with a stand-in for LLMLingua-2."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from baselines.pruned import compressor
from baselines.pruned.compressor import CompressorSettings, LlmLingua2, check_files
from baselines.pruned.config import PrunedRagConfig
from memsys.errors import AssetError, ConfigError
from memsys.protocol import NeedsAssets
from tests.support.composing import conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel

TALK = conversation(["the sea is calm", "we sail the boat"], ["the cake was sweet"])


class WithoutArticles:
    def prune(self, text: str) -> str:
        return " ".join(word for word in text.split() if word not in ("the", "a"))


@pytest.fixture
def pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressor, "load", lambda settings: WithoutArticles())


def build(name: str = "rag_prune") -> Any:
    return memory_config(name).build(parts(FakeModel(lambda role, values, key: "")))


@pytest.mark.usefixtures("pruning")
def test_passages_are_found_whole_and_shown_pruned() -> None:
    whole, pruned = build("rag_chunk"), build()
    for memory in (whole, pruned):
        ingest(memory, TALK)
    plain, shown = (asyncio.run(memory.retrieve("the sea")) for memory in (whole, pruned))
    assert [(hit.memory_id, hit.score, hit.turn_ids) for hit in shown.hits] == [
        (hit.memory_id, hit.score, hit.turn_ids) for hit in plain.hits
    ]
    assert [hit.text for hit in shown.hits] == [WithoutArticles().prune(hit.text) for hit in plain.hits]
    assert "the" not in shown.context.split() and "[1 May 2023] Ann: sea is calm Ben: we sail boat" in shown.context
    assert 0 < pruned.statistics()["kept_characters"] < 1


@pytest.mark.usefixtures("pruning")
def test_a_snapshot_holds_the_pruned_texts() -> None:
    first, second = build(), build()
    ingest(first, TALK)
    second.load_state(first.state())
    assert asyncio.run(second.retrieve("cake")).context == asyncio.run(first.retrieve("cake")).context


def settings(**changes: Any) -> CompressorSettings:
    config = memory_config("rag_prune")
    assert isinstance(config, PrunedRagConfig)
    return CompressorSettings(**{**config.compressor, **changes})


def test_without_package_or_model_it_says_so_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = memory_config("rag_prune")
    assert isinstance(config, NeedsAssets)
    assert not isinstance(memory_config("rag_chunk"), NeedsAssets)
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AssetError, match=r"pip install 'memsys\[prune\]'"):
        config.check_assets()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: SimpleNamespace())
    with pytest.raises(AssetError, match=r"huggingface-cli download microsoft/llmlingua-2.*--local-dir"):
        config.check_assets()
    folder = tmp_path / settings().model
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    check_files(settings())


def test_the_classifier_is_asked_with_rate_and_forced_tokens() -> None:
    asked: list[Any] = []

    def compress(texts: list[str], **options: Any) -> dict[str, str]:
        asked.append((texts, options))
        return {"compressed_prompt": "sea calm"}

    tool = LlmLingua2(SimpleNamespace(compress_prompt_llmlingua2=compress), settings(keep_rate=0.5))
    assert (tool.prune("the sea is calm"), tool.prune("  ")) == ("sea calm", "  ")
    assert asked == [(["the sea is calm"], {"rate": 0.5, "force_tokens": ["\n"]})]


@pytest.mark.parametrize(("changes", "message"), [({"keep_rate": 0}, "keep_rate"), ({"device": "tpu"}, "cpu, cuda")])
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**changes)
