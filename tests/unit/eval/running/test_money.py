"""Costs of hosted runs: said before the first call, discounted as the provider does, and limits of a server kept."""

import asyncio
import io
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.config.prices import Price, load_prices
from eval.run import compose_and_run
from eval.running.composed import compose_plan
from eval.running.progress import TrafficSince, traffic_note
from eval.running.servers import findings_folder
from eval.sweep.cells import Composer
from eval.sweep.costing import CostTotals
from eval.sweep.expense import _sweep_expenses, confirm_run, confirm_sweep, expenses
from eval.sweep.hosted_page import PAGE, RUNS, hosted_costs
from memsys.errors import ConfigError
from memsys.llm.findings import Findings, FindingsStore
from memsys.llm.rate_limits import RateLimits
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.standin import run_on, settings_of, standin
from tests.support.stub_server import stub


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def hosted_settings(folder: Path, *more: str) -> list[str]:
    sample = ["memory=rag", "dataset=locomo_sample", "backbone=gpt4o_mini", "embedder=hashing"]
    return [*sample, f"runs_dir={folder}", f"cache_dir={folder}", *more]


def hosted(folder: Path, *more: str) -> Any:
    return compose_plan(hosted_settings(folder, *more))


def test_a_hosted_run_says_what_it_costs_and_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = expenses(hosted(tmp_path))
    assert found.totals.calls > 0 and found.price is not None
    for answer, agreed in (("y\n", True), ("\n", False), ("no\n", False)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys, "stderr", Terminal())
        with nullcontext() if agreed else pytest.raises(ConfigError, match="not started; this command paid nothing"):
            confirm_run(hosted(tmp_path), agreed=False)
        assert "gpt4o_mini: about" in capsys.readouterr().out
    confirm_run(hosted(tmp_path), agreed=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    confirm_run(hosted(tmp_path), agreed=False)  # nobody to ask


def test_answers_in_batches_cost_half(tmp_path: Path) -> None:
    (live,), (later,) = (expenses(hosted(tmp_path, f"backbone/engine={name}")) for name in ("openai", "openai_batch"))
    assert live.price is not None
    assert later.later.calls == live.totals.calls  # rag asks nothing while it writes
    assert "under $0.01 (list prices of 2026-03, in batches)" in later.text()
    assert "answers in batches" in replace(later, later=later.totals - CostTotals(1)).text()
    dear = replace(live.price, prompt=150.0, completion=600.0)  # 13,008 and 680 tokens: $2.36
    assert ": $2.36 (" in replace(live, price=dear).text() and ": $1.18 (" in replace(later, price=dear).text()


def test_a_second_backbone_costs_too(tmp_path: Path) -> None:
    xmemory = ["memory=xmemory", "dataset=locomo_sample", "embedder=hashing", f"runs_dir={tmp_path}"]
    second = ["+backbone@second=gpt41_mini", "second_roles=[probe]", "chat_roles=[probe]"]
    plan = compose_plan([*xmemory, f"cache_dir={tmp_path}", "backbone=gpt5_nano", *second])
    main, other = expenses(plan)
    assert (main.backbone, other.backbone) == ("gpt5_nano", "gpt41_mini") and main.totals.calls and other.totals.calls
    local = replace(plan, backbone=compose_plan([*xmemory, "backbone=qwen25_coder_05b"]).backbone)
    assert [one.backbone for one in expenses(local)] == ["gpt41_mini"]


@pytest.mark.parametrize(("thought", "given", "each", "said"), [
    (640, [], 640, "reply tokens, 640 of each reply for thoughts, as many as a small question took: "),
    (0, [], 0, "reply tokens, and thoughts on top, up to 4,096 tokens a reply: "),
    (0, ["backbone.thinking_tokens=0"], 0, "reply tokens, and thoughts on top: "),
])  # fmt: skip
def test_costs_say_what_is_known_of_thoughts(
    tmp_path: Path, thought: int, given: list[str], each: int, said: str
) -> None:
    (usual,) = expenses(hosted(tmp_path))
    config = hosted(tmp_path, *given).backbone
    found = Findings(asked=datetime.now(UTC).isoformat(), thoughts="hidden", thought_tokens=thought)
    FindingsStore(findings_folder(tmp_path)).put(*config.engine.served(), found)
    (one,) = expenses(hosted(tmp_path, *given))
    assert one.totals.reply == usual.totals.reply + each * usual.totals.calls
    assert said in one.text() and "thought" not in usual.text()
    (later,) = expenses(hosted(tmp_path, *given, "backbone/engine=openai_batch"))
    assert later.later == one.totals
    (of_sweep,) = _sweep_expenses([Composer().cell(hosted_settings(tmp_path, *given))])
    assert (of_sweep.totals, of_sweep.thoughts) == (one.totals, one.thoughts)
    FindingsStore(findings_folder(tmp_path)).put(*config.engine.served(), replace(found, thoughts_off={"thinking": 0}))
    (off,) = expenses(hosted(tmp_path))
    assert off.text() == usual.text()


def test_a_sweep_says_what_all_its_runs_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["dataset=locomo_sample", "embedder=hashing", f"runs_dir={tmp_path}", f"cache_dir={tmp_path}"]
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ConfigError, match="not started"):
        confirm_sweep(["memory=rag,bm25_turn", "backbone=gpt4o_mini,qwen25_coder_05b", *places], None, agreed=False)
    (said,) = (line for line in capsys.readouterr().out.splitlines() if "prompt tokens" in line)
    assert said.startswith("gpt4o_mini: 2 runs, about 68 calls with ")
    confirm_sweep(["memory=rag,bm25_turn", "backbone=qwen25_coder_05b", *places], None, agreed=False)
    assert "tokens" not in capsys.readouterr().out


def test_each_cell_says_whether_it_asks_a_second_backbone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = ["+backbone@second=gpt41_mini", "second_roles=[probe]", "chat_roles=[probe]", f"runs_dir={tmp_path}"]
    more = ["dataset=locomo_sample", "embedder=hashing", f"cache_dir={tmp_path}", "backbone=qwen25_coder_05b"]
    confirm_sweep(["memory=rag,xmemory", *second, *more], None, agreed=True)
    assert "gpt41_mini: 1 run, about " in capsys.readouterr().out


SWEEPS = [
    ["-m", "memory=rag,bm25_turn"], ["--config-dir", ".", "memory=rag"], ["hydra.mode=MULTIRUN", "memory=rag"],
    ["+sweep=memfly_table1", "memory=rag"],
]  # fmt: skip


@pytest.mark.parametrize("command", SWEEPS)
def test_no_command_pays_before_it_asked(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", said := Terminal())
    monkeypatch.setattr("eval.run.run_one", lambda plan, wait=0.0: pytest.fail("it was run"))
    places = ["dataset=locomo_sample", "embedder=hashing", f"runs_dir={tmp_path}", f"cache_dir={tmp_path}"]
    with pytest.raises((ConfigError, SystemExit)) as ended:
        compose_and_run([*command, "backbone=gpt4o_mini", *places])
    shown = capsys.readouterr()
    assert "gpt4o_mini: " in shown.out and "not started; this command paid nothing" in f"{ended.value}{said.getvalue()}"


def test_a_server_of_this_machine_costs_nothing(tmp_path: Path) -> None:
    with standin("sglang") as one:
        plan = compose_plan(settings_of(one, tmp_path))
        assert not expenses(plan)
        run_on(one, tmp_path)
        assert plan.backbone is not None
        other = replace(plan.backbone.engine, base_urls=["http://example.org/v1"])
        assert not expenses(replace(plan, backbone=replace(plan.backbone, engine=other)))  # it is complete


def test_tokens_that_the_provider_has_seen_cost_less() -> None:
    price = Price(prompt=1.0, completion=2.0, cached=0.1, batch=0.5)
    assert price.of(1_000_000, 500_000) == pytest.approx(2.0)
    assert price.of(1_000_000, 500_000, 400_000) == pytest.approx(0.6 + 0.04 + 1.0)
    assert price.of(1_000_000, 500_000, batch=True) == pytest.approx(1.0)
    assert price.of_both((1_000_000, 500_000, 400_000), (1_000_000, 500_000)) == pytest.approx(1.64 + 1.0)
    assert Price(1.0, 2.0).of(1_000_000, 0, 1_000_000) == pytest.approx(1.0)  # no discount is known
    assert load_prices()["gpt4o_mini"].cached == 0.075


def test_progress_shows_dollars_where_a_price_is_known() -> None:
    assert traffic_note(TrafficSince(10, 100, 1, 0, 0.5), 1.0).startswith("$0.5000, 10.0 calls/s")
    assert "$" not in traffic_note(TrafficSince(10, 100, 1, 0), 1.0)


@pytest.mark.parametrize(
    ("headers", "waits"),
    [({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"},
      True),
     ({"X-RateLimit-Limit-Tokens": "1000", "X-RateLimit-Remaining-Tokens": "10", "X-RateLimit-Reset-Tokens": "0.6s"},
      True),
     ({"x-ratelimit-limit-req-minute": "60", "x-ratelimit-remaining-req-minute": "59"}, False),
     ({"x-ratelimit-limit-requests": "50", "x-ratelimit-remaining-requests": "0",
       "x-ratelimit-reset-requests": "20h"}, False),  # by the day: the server's refusal says how long
     ({"x-ratelimit-remaining-requests": "many"}, False), ({}, False)],
)  # fmt: skip
def test_nothing_is_sent_beyond_the_limits_that_headers_state(headers: Mapping[str, str], waits: bool) -> None:
    async def wait() -> float:
        limits = RateLimits()
        limits.learn({name.lower(): value for name, value in headers.items()})
        begun = time.monotonic()
        await limits.wait(tokens=400)
        return time.monotonic() - begun

    assert (asyncio.run(wait()) > 0.004) is waits


def test_a_refused_request_holds_the_others_up_and_none_is_answered_twice(tmp_path: Path) -> None:
    refused = [3]

    def bodies(body: Mapping[str, Any]) -> tuple[Any, ...] | None:
        if refused[0]:
            refused[0] -= 1
            return 429, {"error": {"message": "slow down"}}, {"Retry-After": "0.3"}
        return None

    async def run(url: str) -> None:
        enter()
        config = backbone_config(max_in_flight=3)
        async with open_backbone(StubEngine([url], name="openai"), tmp_path, config=config) as backbone:
            model = backbone.bind("c1")
            await asyncio.gather(*(model.ask(role(), {"text": str(n)}, key=str(n)) for n in range(12)))

    with stub() as server:
        server.state.bodies = bodies
        asyncio.run(run(server.url))
        assert server.state.count == 12 + 3


def hosted_rows() -> list[list[str]]:
    """Rows of the table of hosted runs in docs/models.md."""
    table = PAGE.read_text("utf-8").partition("<!-- hosted: begin -->")[2].partition("<!-- hosted: end -->")[0]
    lines = table.strip().splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_of_models_says_dollars_by_todays_prices() -> None:
    rows = hosted_rows()
    assert list(dict.fromkeys(row[0] for row in rows)) == [" ".join(settings) for settings in RUNS]
    for _, backbone, _, _, prompt, reply, dollars, batches in rows:
        whole = load_prices()[backbone].of(float(prompt) * 1e6, float(reply) * 1e6)
        assert dollars == f"{whole:.2f}", "run python -m eval.sweep.hosted_page"
        assert whole / 2 - 0.01 <= float(batches) <= whole + 0.01


def test_the_page_of_models_says_tokens_by_todays_plan(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_DATA", str(data_dir))
    (costs,) = hosted_costs(RUNS[0])
    said = hosted_rows()[0]
    assert said[3] == f"{costs.calls.calls:,.0f}", "run python -m eval.sweep.hosted_page"
    assert said[4:6] == [f"{costs.calls.prompt / 1e6:.2f}", f"{costs.calls.reply / 1e6:.2f}"]
