"""Providers through litellm: one ledger, cache and set of errors; the package is asked for where it is missing."""

import asyncio
import gc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.runs.rows import ledger
from memsys.errors import ConfigError
from memsys.llm.engines.litellm import LiteLLMEngineConfig
from memsys.llm.ledger import CallRecord
from tests.support.standin import FOLDER, standin
from tests.support.stub_server import stub

#: litellm keeps its connections open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
needs_package = pytest.mark.skipif(find_spec("litellm") is None, reason="needs the package litellm: memsys[litellm]")


@pytest.fixture(autouse=True)
def _connections_are_left_here() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.skipif(find_spec("litellm") is not None, reason="litellm is installed")
def test_without_the_package_the_run_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'memsys\[litellm\]'"):
        LiteLLMEngineConfig(model="openai/x", api_base=None, api_key_env=None).check_start()


def settings(url: str, folder: Path) -> list[str]:
    return [
        "memory=bm25_turn", "embedder=hashing", "dataset=custom", f"dataset.data_dir={FOLDER / 'two_questions'}",
        "backbone=litellm", "backbone.model=openai/stub", f"backbone.engine.api_base={url}",
        "backbone.engine.api_key_env=STUB_API_KEY", "backbone.transport_retries=1", "backbone.backoff_s=0.01",
        f"cache_dir={folder / 'cache'}", "score=false",
    ]  # fmt: skip


@needs_package
def test_a_run_through_litellm_has_the_same_ledger_cache_and_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_API_KEY", "not-a-real-key")
    with standin("deepseek") as one:
        result = run_experiment(compose_plan([*settings(one.url, tmp_path), f"run_dir={tmp_path / 'one'}"]))
        assert result.complete
        asked = one.server.state.count
        again = run_experiment(compose_plan([*settings(one.url, tmp_path), f"run_dir={tmp_path / 'two'}"]))
        assert again.complete and one.server.state.count == asked
    calls = list(ledger(tmp_path / "one" / "calls.jsonl", CallRecord))
    assert [call.outcome for call in calls] == ["answered"] * 2 and all(call.prompt_tokens for call in calls)
    assert {call.endpoint for call in calls} == {"litellm-0"}
    assert all(call.cache_hit for call in ledger(tmp_path / "two" / "calls.jsonl", CallRecord))
    assert "not-a-real-key" not in (tmp_path / "one" / "run.json").read_text("utf-8")


@needs_package
def test_errors_keep_the_providers_words_and_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_API_KEY", "not-a-real-key")

    async def status(failure: str, url: str) -> int:
        server.fail(failure)
        engine = LiteLLMEngineConfig(model="openai/stub", api_base=url, api_key_env="STUB_API_KEY").build()
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}
        return (await engine.answer("/chat/completions", body, 5.0)).status  # type: ignore[attr-defined]

    with stub() as server:
        assert [asyncio.run(status(failure, server.url)) for failure in ("", "401", "429", "500")] == [
            200,
            401,
            429,
            500,
        ]
