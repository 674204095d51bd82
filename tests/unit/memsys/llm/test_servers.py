"""Servers of others: what they take is found out once, settings follow, what the user gave holds, and runs complete."""

import asyncio
import json
import os
import shutil
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import memsys
from eval import probe as command
from eval.api.parts import choose, endpoint, given_backbone
from eval.judge.__main__ import make_plan as judge_plan
from eval.run import compose_and_run
from eval.running.composed import compose_plan
from eval.running.servers import findings_folder, fitted
from eval.stress import _plan as stress_plan
from memsys.credentials import redacted
from memsys.errors import BackboneUnusableError, BudgetSpentError, ConfigError
from memsys.llm import probing
from memsys.llm.config import BackboneConfig
from memsys.llm.findings import Findings, FindingsStore, with_choices
from memsys.llm.probing import probe
from tests.support.standin import NAMES, StandIn, run_on, settings_of, standin
from tests.support.stub_server import stub

#: What has to be chosen for a run at each server.
CHOSEN: dict[str, dict[str, Any]] = {
    "anthropic": {"structured": "off", "completions": False},
    "azure": {"completions": False},
    "bedrock": {"structured": "off", "send_seed": False, "thinking_tokens": 2048, "completions": False},
    "deepseek": {
        "structured": "json_object", "thinking": "off", "thinking_switch": {"thinking": {"type": "disabled"}},
        "completions": False,
    },
    "gemini": {
        "send_seed": False, "thinking": "off", "thinking_switch": {"reasoning_effort": "none"}, "completions": False,
    },
    "groq": {
        "structured": "json_object", "thinking": "off", "thinking_switch": {"reasoning_effort": "none"},
        "context_length": 131072, "completions": False,
    },
    "lmstudio": {"context_length": 4096},
    "mistral": {"send_seed": False, "thinking_tokens": 4096, "context_length": 40960, "completions": False},
    "ollama": {"thinking": "off", "thinking_switch": {"reasoning_effort": "none"}, "context_length": 4096},
    "openai": {
        "max_tokens_field": "max_completion_tokens", "send_temperature": False, "send_seed": False, "thinking": "off",
        "thinking_switch": {"reasoning_effort": "minimal"}, "completions": False,
    },
    "openrouter": {
        "thinking": "off", "thinking_switch": {"reasoning": {"enabled": False}}, "context_length": 163840,
    },
    "sglang": {
        "thinking": "off", "thinking_switch": {"chat_template_kwargs": {"enable_thinking": False}},
        "context_length": 40960,
    },
    "tgi": {"structured": "off", "context_length": 4096},
    "together": {
        "thinking": "off", "thinking_switch": {"reasoning": {"enabled": False}}, "context_length": 32768,
    },
}  # fmt: skip


@pytest.mark.parametrize("silent_at_first", [True, False])
def test_a_run_that_goes_on_keeps_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_at_first: bool
) -> None:
    """Whatever is found out about its server meanwhile: its answers are made in one way."""

    async def silent(*arguments: object) -> None:
        return None

    with standin("mistral") as one:
        with monkeypatch.context() as patch, pytest.raises(BudgetSpentError):
            if silent_at_first:
                patch.setattr("eval.running.servers._asked", silent)
            run_on(one, tmp_path, "budget.tokens=1", "schedule.questions_in_flight=1")
        store = FindingsStore(findings_folder(tmp_path / "cache"))
        store.put(
            one.url, "stub", Findings(thoughts="none", asked=datetime.now(UTC).isoformat(), structured="json_schema")
        )
        record = run_on(one, tmp_path)
        answered = [body for body in one.server.state.requests if "sky" not in str(body.get("messages"))]
    assert record["status"] == "complete" and len({body["max_tokens"] for body in answered[-2:]}) == 1
    chosen = {each["name"]: each["chosen"] for each in record["servers"][0]["chosen"]}
    assert record["servers"][0]["server"] == one.url and chosen == ({} if silent_at_first else CHOSEN["mistral"])


def test_a_run_says_that_it_goes_on_at_another_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with standin("tgi") as one, pytest.raises(BudgetSpentError):
        run_on(one, tmp_path, "budget.tokens=1", "schedule.questions_in_flight=1")
    with standin("tgi") as other:
        run_on(other, tmp_path)
    assert f"this run began at {one.url} and continues at {other.url}; replies" in " ".join(
        capsys.readouterr().out.split()
    )


def test_each_stand_in_is_tried() -> None:
    assert sorted(CHOSEN) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_run_finds_its_settings_and_completes(tmp_path: Path, name: str) -> None:
    with standin(name) as one:
        record = run_on(one, tmp_path)
        answered = one.server.state.requests[-2:]
    found = record["servers"][0]
    assert {each["name"]: each["chosen"] for each in found["chosen"]} == CHOSEN[name]
    assert record["status"] == "complete" and record["counts"]["questions_done"] == 2
    calls = [json.loads(line) for line in (tmp_path / "run" / "calls.jsonl").read_text("utf-8").splitlines()]
    assert [call["outcome"] for call in calls] == ["answered"] * 2
    assert not record["adaptations"]  # nothing is learnt from a refusal of a call that counts
    assert all("sky" not in str(body["messages"]) for body in answered)


def config_of(one: StandIn, **changes: Any) -> BackboneConfig:
    return replace(endpoint(one.url, "stub"), transport_retries=0, **changes)


def fit(config: BackboneConfig, folder: Path) -> Any:
    return asyncio.run(fitted(config, folder, folder))


def test_what_is_known_of_a_server_is_not_asked_again(tmp_path: Path) -> None:
    with standin("openai") as one:
        first = fit(config_of(one), tmp_path)
        asked = one.server.state.count
        assert fit(config_of(one), tmp_path).config == first.config
        assert one.server.state.count == asked
        store = FindingsStore(findings_folder(tmp_path))
        path = store.path(one.url, "stub")
        path.write_text(path.read_text("utf-8").replace(first.found.asked[:4], "2001"), "utf-8")
        assert fit(config_of(one), tmp_path).config == first.config
        assert one.server.state.count == 2 * asked
        path.write_text("{", "utf-8")
        assert store.get(one.url, "stub") is None


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [("openai", {"send_seed": True}, "send_seed=true: the server says: Unsupported"),
     ("deepseek", {"structured": "json_schema"}, "leave that setting out, or set backbone.structured=json_object"),
     ("ollama", {"context_length": 8192}, "context_length=8192: /api/ps"),
     ("openai", {"temperature": 0.0}, "does not take backbone.temperature=0.0: the server says: Unsupported value")],
)  # fmt: skip
def test_what_the_user_gave_is_an_error_before_anything_is_paid(
    tmp_path: Path, name: str, given: dict[str, Any], said: str
) -> None:
    with standin(name) as one:
        config = config_of(one, **given)
        assert fit(config, tmp_path).chosen  # of a preset it is changed
        before = one.server.state.count
        with pytest.raises(ConfigError, match="does not take backbone") as caught:
            fit(replace(config, explicit=frozenset(given)), tmp_path)
        assert said in str(caught.value)
        assert one.server.state.count == before


def test_what_a_preset_of_the_user_says_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was changed without a word, as what a preset of memsys says is; so was what an experiment of theirs says."""
    plans: list[Any] = []
    monkeypatch.setattr("eval.run.run_one", lambda plan: plans.append(plan) or ("", 5))
    folder = ["--config-dir", str(tmp_path / "conf")]
    with standin("ollama") as one:
        for name, text in {
            "backbone/ours": "defaults: [endpoint, _self_]\ncontext_length: 8192",
            "backbone/mine": f"defaults: [ours, _self_]\nmodel: stub\nengine: {{base_urls: [{one.url}]}}",
            "experiment/wide": "# @package _global_\nbackbone: {send_seed: false}",
        }.items():
            (tmp_path / "conf" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "conf" / f"{name}.yaml").write_text(text, "utf-8")
        settings = settings_of(one, tmp_path)
        in_files = [*(text for text in settings if "backbone" not in text), "backbone=mine", "+experiment=wide"]
        for given in (settings, in_files):
            with pytest.raises(SystemExit):
                compose_and_run([*folder, *given])
        assert plans[0].backbone.explicit == {"model", "engine"}  # by the command line; the folder is of no file of it
        assert plans[1].backbone.explicit == {"model", "engine", "context_length", "send_seed"}
        with pytest.raises(ConfigError, match="context_length=8192: /api/ps"):
            fit(plans[1].backbone, tmp_path)


@pytest.mark.parametrize("known", [False, True])
def test_a_temperature_that_the_user_gave_is_what_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    """That 0 is refused, or had been by the run before, was said of 1."""
    with standin("openai") as one:
        if known:
            run_on(one, tmp_path / "before")
            shutil.copytree(tmp_path / "before" / "cache" / "servers", tmp_path / "cache" / "servers")
        record = run_on(one, tmp_path, "backbone.temperature=1")
        assert record["status"] == "complete" and not record["adaptations"]
        assert [body["temperature"] for body in one.server.state.requests[-2:]] == [1, 1]
        before = one.server.state.count
        run_on(one, tmp_path, "backbone.temperature=0.7", f"run_dir={tmp_path / 'other'}")
        assert "which backbone.temperature=0.7 asks for; leave" in " ".join(capsys.readouterr().err.split())
        assert one.server.state.count <= before + 2  # for each question, refused before anything was paid


@pytest.mark.parametrize(
    ("name", "given", "window", "said"),
    [("together", None, 32768, "backbone.context_length=32768 (/models (context_length) says so)"),
     ("together", 4096, 4096, ""),
     ("deepseek", None, 8192, "assuming 8192 tokens (set backbone.context_length=N to change it)"),
     ("deepseek", 4096, 4096, "")],
)  # fmt: skip
def test_the_context_is_as_long_as_the_server_says_or_what_is_assumed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, given: int | None, window: int, said: str
) -> None:
    with standin(name) as one:
        found = fit(replace(endpoint(one.url, "stub", context_length=given), transport_retries=0), tmp_path)
    out = " ".join(capsys.readouterr().out.split())
    assert found.config.window == window and said in out and bool(said) == ("context_length" in out)


def test_a_pause_that_gemini_asks_for_in_its_body_is_kept_and_is_no_retry(tmp_path: Path) -> None:
    with standin("gemini") as one:
        begun = time.monotonic()
        assert fit(config_of(one), tmp_path).found.refused.keys() == {"seed"}  # without any retry
        assert 1.0 <= time.monotonic() - begun < 10.0


def test_thinking_that_the_user_chose_stays(tmp_path: Path) -> None:
    with standin("ollama") as one:
        config = config_of(one, explicit=frozenset({"thinking"}))
        assert [each.name for each in fit(config, tmp_path).chosen] == ["context_length"]


def test_a_server_that_does_not_answer_is_left_to_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with stub() as server:
        url = server.url
    config = replace(endpoint(url, "stub"), transport_retries=0)
    assert fit(config, tmp_path).config == config
    assert "probing its server failed, assuming a context of 8192 tokens" in caplog.text
    assert "does not report" not in capsys.readouterr().out  # it was not asked


def test_a_refused_key_is_said_by_the_runs_first_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with stub() as server:
        server.state.every = "401"
        config = replace(endpoint(server.url, "stub"), transport_retries=0)
        fitted_to = fit(config, tmp_path)
        assert fitted_to.config == config and fitted_to.found is None
        assert "does not report" not in capsys.readouterr().out
        with pytest.raises(BackboneUnusableError, match=r"no key was sent: .*\(memsys probe: --key\).* one$") as said:
            asyncio.run(probe(config, tmp_path, whole=False))
        assert redacted(str(said.value)) == str(said.value)  # the advice looked like a key, and was masked


def look(name: str, folder: Path) -> Findings:
    with standin(name, delay=0.05) as one:
        return asyncio.run(probe(config_of(one), folder, whole=True))


def test_the_whole_look_finds_how_many_requests_are_taken_at_once(tmp_path: Path) -> None:
    found = look("azure", tmp_path)
    assert found.in_flight is not None and found.in_flight <= 16 and "429" in found.pushed_back
    assert found.repeatable and found.prompt_cache and found.tools == "taken, none called"
    assert look("deepseek", tmp_path).prompt_cache  # under names of its own


@pytest.mark.parametrize(
    ("status", "headers", "lasts"),
    [(429, {"Retry-After": "6"}, False), (429, {}, True), (500, {}, False),
     (429, {"x-ratelimit-limit-requests": "25", "x-ratelimit-remaining-requests": "0"}, False)],
)  # fmt: skip
def test_what_is_no_sign_of_too_many_at_once_lowers_nothing(
    tmp_path: Path, status: int, headers: dict[str, str], lasts: bool
) -> None:
    """A limit by the minute gave 8 requests at once for a week, and was an error where more were given."""
    with standin("sglang", delay=0.02) as one:
        behave, refused = one.server.state.bodies, 0
        assert behave is not None

        def answer(body: Any) -> Any:
            nonlocal refused
            if one.server.state.in_flight < 4 and not (refused and lasts):
                return behave(body)
            refused += 1
            return status, {"error": {"message": "stub"}}, headers

        one.server.state.bodies = answer
        found = asyncio.run(probe(config_of(one), tmp_path, whole=True))
    assert refused and found.in_flight in (2, 4) and not found.pushed_back


def test_a_given_number_of_requests_at_once_stays(caplog: pytest.LogCaptureFixture) -> None:
    found = Findings(in_flight=8, pushed_back="status 429: too many")
    config = replace(endpoint("http://h/v1", "m"), max_in_flight=16)
    assert with_choices(config, found, "it")[0].max_in_flight == 8
    given = replace(config, explicit=frozenset({"max_in_flight"}))
    assert with_choices(given, found, "it") == (given, []) and "backbone.max_in_flight=16 stays as given" in caplog.text


@pytest.mark.parametrize(("name", "tokens"), [("mistral", 120 + 2 - 5), ("openai", 0), ("tgi", 0)])
def test_thoughts_that_nothing_switches_off_are_counted(tmp_path: Path, name: str, tokens: int) -> None:
    """A reply of 120 tokens of thoughts and two words; its text of 18 characters is estimated at 5 tokens."""
    with standin(name) as one:
        assert fit(config_of(one), tmp_path).found.thought_tokens == tokens


def test_a_slow_server_is_not_asked_more_and_more_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_LONG_BURST_SECONDS", 0.04)
    found = look("azure", tmp_path)
    assert found.in_flight == 2 and not found.pushed_back


def test_each_part_says_what_it_asks_for_while_it_asks(tmp_path: Path) -> None:
    said: list[str] = []

    def stage(title: str) -> AbstractContextManager[None]:
        said.append(title)
        return nullcontext()

    with standin("azure", delay=0) as one:
        asyncio.run(probe(config_of(one), tmp_path, whole=True, stage=stage))
    assert said == [
        "looking for thoughts", "asking for replies in JSON", "asking for the window", "sending a raw prompt",
        "offering a tool", "asking the same again", "sending a long prompt twice", "sending requests at once",
    ]  # fmt: skip


def test_the_command_prints_a_table_and_keeps_it_for_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "MEMSYS_HOME", str(tmp_path))
    monkeypatch.setattr("eval.commands.rendering.terminal.console", lambda: Console(width=100))
    with standin("groq") as one:
        assert command.main([one.url, "stub"]) == 0
        said = capsys.readouterr().out
        (row,) = [line for line in said.splitlines() if line.startswith(" json_schema")]
        assert row.split() == ["json_schema", "refused", "structured=json_object"]
        assert "in the text (think)" in said and "continued" not in said  # one table, whose rows are whole
        asked = one.server.state.count
        fit(config_of(one), tmp_path / "results" / "cache")
        assert one.server.state.count == asked
        assert command.main([one.url]) == 2


@pytest.mark.parametrize("name", ["openai", "deepseek"])
def test_a_memory_of_a_program_finds_its_settings_as_a_run_does(tmp_path: Path, name: str) -> None:
    """It sent what the server refuses, and failed."""
    with standin(name) as one:
        for cache_dir in (None, str(tmp_path), tmp_path):
            before = one.server.state.count
            backbone = memsys.endpoint(one.url, "stub")
            with memsys.open_memory("bm25_turn", backbone=backbone, embedder="hashing", cache_dir=cache_dir) as memory:
                memory.add([("Ann", "My cat is called Pixel.")])
                assert memory.answer("What is the cat called?").prediction == "Pixel"
            (call,) = memory.calls
            assert call.outcome == "answered"
        assert call.cache_hit and one.server.state.count == before  # what was found and answered is asked once


def test_what_a_program_gave_is_an_error_too(tmp_path: Path) -> None:
    with standin("ollama") as one:
        backbone = memsys.endpoint(one.url, "stub", context_length=8192)
        with pytest.raises(ConfigError, match="context_length=8192: /api/ps"):
            memsys.open_memory("bm25_turn", backbone=backbone, embedder="hashing").__enter__()
        given = ["backbone.model=stub", f"backbone.engine.base_urls=[{one.url}]", "backbone.context_length=8192"]
        with pytest.raises(ConfigError, match="context_length=8192: /api/ps"):
            memsys.open_memory("bm25_turn", backbone="endpoint", embedder="hashing", settings=given).__enter__()
        assert "context_length" in judge_plan(["backbone=endpoint", *given]).backbone.explicit
        assert "context_length" in compose_plan(["backbone=endpoint", *given]).backbone.explicit  # type: ignore[union-attr]
        assert "context_length" in stress_plan("bm25_turn", ["backbone=endpoint", *given]).backbone.explicit  # type: ignore[union-attr]
        with pytest.raises(ConfigError, match="the backbone is an object"):
            memsys.open_memory("bm25_turn", backbone=backbone, embedder="hashing", settings=["backbone.structured=off"])


def test_what_a_program_changed_of_an_endpoint_is_given_too(tmp_path: Path) -> None:
    """The server's refusal changed it without a word, and a run did not have it at all."""
    with standin("openai") as one:
        usual = memsys.endpoint(one.url, "stub")
        changed = replace(usual, temperature=0.0, thinking="off", thinking_switch={"reasoning_effort": "none"})
        with pytest.raises(ConfigError, match=r"does not take backbone\.temperature=0\.0"):
            memsys.open_memory("bm25_turn", backbone=changed, embedder="hashing").__enter__()
        kept = replace(usual, max_tokens_field="max_tokens", timeout_s=9)
        assert choose("bm25_turn", kept, "hashing", "clag").backbone.explicit == {"timeout_s"}  # type: ignore[union-attr]
    small = ("memory=rag", "dataset=locomo_sample", "embedder=hashing")
    of_run = compose_plan([*small, *given_backbone(changed)]).backbone
    assert of_run is not None and {"temperature", "thinking", "thinking_switch"} <= of_run.explicit
    assert replace(of_run, engine=changed.engine, explicit=frozenset()) == changed
