"""Budgets: a run stops when it has spent what it may, keeps what it paid for, and goes on where it stopped."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from eval.config.presets import CONF, preset_names
from eval.config.prices import FILE, EmbeddingPrice, Price, dates_of, load_embedding_prices, load_prices
from eval.results.compare.model import make_report
from eval.results.compare.rows import system_rows
from eval.results.frame import Skipped, read_run
from eval.run import run_one
from eval.running import budgets
from eval.running.budgets import check_prices, make_meters
from eval.running.composed import compose_plan
from eval.running.models import paid_parts
from eval.running.plan import Plan
from eval.runs.embeddings import EMBEDDINGS
from eval.runs.files import read_json_lines
from eval.runs.load import load_answers, load_calls
from eval.runs.rundir import CALLS, REPEATED_CALLS, RunDirectory
from eval.scoring.protocols import load_protocol
from memsys.errors import BudgetSpentError, ConfigError
from memsys.llm.bounded import INLINE_CHARS
from memsys.llm.budget import Budget
from memsys.llm.cache_files import ReplyFiles
from tests.support.embedding_server import EmbeddingServer
from tests.support.fake_run import FakeRun
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

#: Eight questions, one call each, in conversations of the sample.
RUN = ("memory=rag", "embedder=hashing", "dataset.limit_questions=8", "score=false")
ALONE = "schedule.questions_in_flight=1"


def plan_for(stub: StubServer, folder: Path, *more: str) -> Plan:
    folders = (f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}")
    plan = compose_plan([*RUN, *attached(stub.url), *folders, *more])
    assert isinstance(plan, Plan)
    return plan


def answers(folder: Path) -> dict[str, str]:
    return {name: row.prediction for name, row in load_answers(folder / "run").items()}


def test_a_run_stops_at_its_budget_and_goes_on_with_a_larger_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StubServer() as stub:
        assert run_one(plan_for(stub, tmp_path / "free"))[1] == 0
        whole = load_calls(tmp_path / "free" / "run")
        half = sum(call.prompt_tokens + call.completion_tokens for call in whole) // 2
        limited = tmp_path / "limited"
        capsys.readouterr()
        status = run_one(plan_for(stub, limited, ALONE, f"budget.tokens={half}"))[1]
        said = capsys.readouterr().err
        assert status == 4
        spent = [call.prompt_tokens + call.completion_tokens for call in load_calls(limited / "run")]
        assert sum(spent) >= half > sum(spent[:-1])  # the call that met the limit was the last
        assert " ".join(said.split()).count(f"the budget is spent: {sum(spent)} of {half} tokens") == 1
        record = json.loads((limited / "run" / "run.json").read_text())
        assert record["status"] == "incomplete"
        assert record["problems"] == [
            f"the budget is spent: {sum(spent)} of {half} tokens; run the same command with a larger budget.tokens to "
            "continue"
        ]
        before = stub.state.count
        assert run_one(plan_for(stub, limited, ALONE, f"budget.tokens={half}"))[1] == 4
        assert stub.state.count == before  # what earlier parts spent counts
        assert run_one(plan_for(stub, limited, f"budget.tokens={3 * half}"))[1] == 0
    assert answers(limited) == answers(tmp_path / "free")
    assert stub.state.count == before + len(whole) - len(spent)


def test_calls_in_flight_are_finished_and_booked_before_the_run_stops(tmp_path: Path) -> None:
    with StubServer(delay=0.05) as stub:
        assert run_one(plan_for(stub, tmp_path, "schedule.questions_in_flight=4", "budget.tokens=1"))[1] == 4
    assert len(load_calls(tmp_path / "run")) == stub.state.count == 4
    assert not any(call.cache_hit for call in load_calls(tmp_path / "run"))


def test_a_call_whose_reply_is_on_its_way_to_the_disk_is_booked_before_the_run_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared cache waits for the disk after each reply: three of four paid calls had no row, and cost nothing."""
    seconds = iter((0.0, 0.3, 0.3, 0.3))
    monkeypatch.setattr(ReplyFiles, "flush", lambda files: time.sleep(next(seconds)))
    with StubServer(delay=0.05) as stub:
        shared = plan_for(stub, tmp_path, "schedule.questions_in_flight=4", "cache_shared=true", "budget.tokens=1")
        assert run_one(shared)[1] == 4
    assert len(load_calls(tmp_path / "run")) == stub.state.count == 4


def test_a_call_whose_reply_is_being_repaired_is_booked_before_the_run_stops(tmp_path: Path) -> None:
    """Repair runs beside the event loop, which went on to end the run."""
    cut = '{"answer": "' + "x" * 2 * INLINE_CHARS
    with StubServer(delay=0.05) as stub:
        stub.state.replies = lambda body: cut
        assert run_one(plan_for(stub, tmp_path, "schedule.questions_in_flight=4", "budget.tokens=1"))[1] == 4
    assert len(load_calls(tmp_path / "run")) == stub.state.count == 4


def words_of(seen: list[int]) -> Callable[[Any], str]:
    """Replies of one, two, three ... words, so that each is known by its number of tokens."""

    def reply(body: Any) -> str:
        seen.append(len(seen) + 1)
        return "word " * len(seen)

    return reply


def test_the_ledger_holds_the_measured_calls_and_the_budget_counts_those_of_the_warm_up(tmp_path: Path) -> None:
    """Calls of the warm-up stood in place of those that were measured, which a resumed run then did not count."""
    latency = ("timing=latency", "reader=locomo", "schedule.warmup=3")
    with StubServer() as stub:
        stub.state.replies = words_of([])
        assert run_one(plan_for(stub, tmp_path, *latency))[1] == 0
        answered = load_answers(tmp_path / "run")
        for call in load_calls(tmp_path / "run"):
            assert call.completion_tokens == answered[call.item].completion_tokens
        again = plan_for(stub, tmp_path, *latency, "budget.tokens=1000000")
        budget = make_meters(again.budget, paid_parts(again), tmp_path / "run").main
    paid = [*read_json_lines(tmp_path / "run" / CALLS), *read_json_lines(tmp_path / "run" / REPEATED_CALLS)]
    assert len(paid) == stub.state.count == 11
    assert budget is not None
    assert budget.budget.spent_tokens == sum(row["prompt_tokens"] + row["completion_tokens"] for row in paid)


def test_calls_that_are_made_again_without_a_cache_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start of a run without a reply cache paid what it had paid before, and the budget began again."""
    with StubServer() as stub:
        plan = plan_for(stub, tmp_path, ALONE, "use_cache=false", "budget.tokens=1000000")
        with monkeypatch.context() as patch:
            patch.setattr(RunDirectory, "add_answer", lambda directory, record: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                run_one(plan)
        assert run_one(plan)[1] == 0
        budget = make_meters(plan.budget, paid_parts(plan), tmp_path / "run").main
    calls, repeated = (list(read_json_lines(tmp_path / "run" / name)) for name in (CALLS, REPEATED_CALLS))
    assert (len(calls), len(repeated)) == (8, 1)
    assert budget is not None
    assert budget.budget.spent_tokens == sum(
        row["prompt_tokens"] + row["completion_tokens"] for row in (*calls, *repeated)
    )


def test_a_resumed_run_knows_what_replies_that_are_no_completion_have_cost(tmp_path: Path) -> None:
    """They were in no file, and the budget began again without them; the method's own calls have none of it."""
    rejected = iter([{"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 30}}])
    with StubServer() as stub:
        stub.state.bodies = lambda body: None if (reply := next(rejected, None)) is None else (200, reply, {})
        plan = plan_for(stub, tmp_path, ALONE, "budget.tokens=1000000")
        assert run_one(plan)[1] == 0
        assert stub.state.count == 9
        budget = make_meters(plan.budget, paid_parts(plan), tmp_path / "run").main
    calls = load_calls(tmp_path / "run")
    (row,) = read_json_lines(tmp_path / "run" / REPEATED_CALLS)
    assert len(calls) == 8
    assert {call.outcome for call in calls} == {"answered"}
    assert (row["role"], row["outcome"], row["prompt_tokens"], row["completion_tokens"]) == (
        calls[0].role, "failed", 700, 30
    )  # fmt: skip
    assert budget is not None
    assert budget.budget.spent_tokens == 730 + sum(call.prompt_tokens + call.completion_tokens for call in calls)


def test_a_run_whose_last_calls_pass_the_budget_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StubServer(delay=0.05) as stub:
        assert run_one(plan_for(stub, tmp_path, "schedule.questions_in_flight=8", "budget.tokens=1"))[1] == 0
    spent = sum(call.prompt_tokens + call.completion_tokens for call in load_calls(tmp_path / "run"))
    said = f"the run has spent more than its budget, {spent} of 1 tokens: "
    assert " ".join(capsys.readouterr().out.split()).count(said) == 1
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"


def test_a_run_within_its_budget_says_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StubServer() as stub:
        assert run_one(plan_for(stub, tmp_path, "budget.tokens=1000000"))[1] == 0
    assert "budget" not in capsys.readouterr().out


def test_dollars_by_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer() as stub:
        with pytest.raises(ConfigError, match="has no price of smollm2_135m_vllm"):
            run_one(plan_for(stub, tmp_path, "budget.dollars=1"))
        monkeypatch.setattr(budgets, "load_prices", lambda: {"smollm2_135m_vllm": Price(1_000_000, 0)})
        assert run_one(plan_for(stub, tmp_path, ALONE, "budget.dollars=1"))[1] == 4
        assert len(load_calls(tmp_path / "run")) == 1


@pytest.mark.parametrize("setting", ["tokens=0", "tokens=1.5", "tokens=true", "dollars=0", "dollars=-1", "dollars=x"])
def test_a_limit_is_a_number_above_zero(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"budget.{setting.split('=')[0]}=.* above 0"):
        compose_plan([*RUN, f"budget.{setting}"])


def test_replies_from_the_cache_are_free() -> None:
    """One call of 3 tokens passes a limit of 2; the next is refused, and says what was spent."""

    async def run() -> None:
        budget = Budget(tokens=2, dollars=5.0)
        await budget.begin()
        budget.spend(2, 1, Price(1_000_000, 2_000_000))
        budget.end()
        assert (budget.spent_tokens, budget.spent_dollars) == (3, 4.0)
        with pytest.raises(BudgetSpentError, match=r"3 of 2 tokens, \$4.0000 of \$5; .* or budget.dollars"):
            await budget.begin()

    asyncio.run(run())


def test_a_failed_call_does_not_hold_the_stop_up() -> None:
    async def run() -> None:
        budget = Budget(tokens=1)
        await budget.begin()
        budget.spend(1, 0, None)
        waiting = asyncio.create_task(budget.begin())
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.end()
        with pytest.raises(BudgetSpentError):
            await waiting

    asyncio.run(run())


def test_the_shipped_prices_name_backbones_a_day_and_a_source() -> None:
    prices = load_prices()
    assert {"gpt4o_mini", "gpt5_nano"} <= set(prices)
    assert load_embedding_prices()["text-embedding-3-small"].of(1_000_000) == pytest.approx(0.02)
    for name, price in (*prices.items(), *load_embedding_prices().items()):
        assert name in load_embedding_prices() or name in preset_names(CONF / "backbone")
        assert price.source
        assert date.fromisoformat(f"{price.date}-01" if len(price.date) == 7 else price.date) < date(2100, 1, 1)
    assert prices["gpt4o_mini"].of(1_000_000, 500_000) == pytest.approx(0.15 + 0.30)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{prompt: 1}", "needs prompt and completion"),
        ("{prompt: 1, completion: true}", "needs prompt and completion"),
        ("{prompt: 1, completion: 2, kept: 3}", "gpt4o.kept is unknown"),
        ("3", "needs prompt and completion"),
        ("{embedding: -1}", "needs embedding"),
        ("{embedding: 1, prompt: 2}", "gpt4o.prompt is unknown"),
    ],
)
def test_a_wrong_price_is_named(tmp_path: Path, entry: str, said: str) -> None:
    path = tmp_path / FILE.name
    path.write_text(f"gpt4o: {entry}\ngpt4o_mini: null\n")
    with pytest.raises(ConfigError, match=said):
        load_prices(path)
        load_embedding_prices(path)


def test_a_comparison_shows_dollars_where_there_is_a_price(tmp_path: Path) -> None:
    """Each question has one answer call of 115 and 5 tokens."""
    shown = {}
    for backbone in ("gpt4o_mini", "smollm2_135m"):
        run = read_run(FakeRun(backbone=backbone).write(tmp_path))
        assert not isinstance(run, Skipped)
        shown[backbone] = system_rows([run], load_protocol("clag"))[0].estimates.get("dollars")
    assert shown["smollm2_135m"] is None
    assert shown["gpt4o_mini"] is not None
    assert shown["gpt4o_mini"].value == pytest.approx(1000 * (115 * 0.15 + 5 * 0.60) / 1e6)


EMBEDDER = "text-embedding-3-small"


def hosted(url: str) -> tuple[str, ...]:
    """Settings of a paid embedder whose server is the stub's neighbour; two dimensions, one text per request."""
    given = {"base_url": f"{url}/v1", "api_key_env": "null", "dimension": 2, "max_batch": 1}
    return ("embedder=text_embedding_3_small", *(f"embedder.{key}={value}" for key, value in given.items()))


def test_dollars_count_what_the_embedder_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text has ten tokens at a dollar each; the backbone costs nothing."""
    monkeypatch.setattr(budgets, "load_prices", lambda: {"smollm2_135m_vllm": Price(0, 0, "2026-03")})
    monkeypatch.setattr(budgets, "load_embedding_prices", lambda: {EMBEDDER: EmbeddingPrice(1_000_000, "2026-07-03")})
    with StubServer() as stub, EmbeddingServer() as server:
        plan = plan_for(stub, tmp_path, *hosted(server.url), "budget.dollars=25", "use_cache=false")
        assert run_one(plan)[1] == 4
        record = json.loads((tmp_path / "run" / "run.json").read_text())
        assert "of $25 (list prices of 2026-03 to 2026-07-03)" in record["problems"][0]
        spent = sum(row["tokens"] for row in read_json_lines(tmp_path / "run" / EMBEDDINGS))
        assert spent == 10 * server.texts >= 25
        before = server.texts
        assert run_one(plan)[1] == 4
        assert server.texts == before  # what earlier parts paid counts
        assert run_one(plan_for(stub, tmp_path, *hosted(server.url), "budget.dollars=1e6", "score=true"))[1] == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    counted = summary["embeddings"]
    assert counted["tokens"] == 10 * server.texts == sum(counted["by_phase"].values())
    assert counted["by_phase"]["retrieve"] > 0
    assert set(counted["by_phase"]) <= {"prepare", "write", "consolidate", "retrieve"}


def test_an_embedder_without_a_price_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "load_embedding_prices", dict)
    monkeypatch.setattr(budgets, "load_prices", lambda: {"smollm2_135m_vllm": Price(0, 0)})
    with StubServer() as stub, EmbeddingServer() as server:
        with pytest.raises(ConfigError, match=f"has no price of {EMBEDDER}"):
            run_one(plan_for(stub, tmp_path, *hosted(server.url), "budget.dollars=1"))
        alone = plan_for(stub, tmp_path, *hosted(server.url), "budget.dollars=1", "memory=bm25_turn")
        check_prices(alone.budget, paid_parts(alone))  # embeds nothing


def test_a_comparison_adds_the_embeddings_of_questions(tmp_path: Path) -> None:
    """Twenty questions, one answer of 115 and 5 tokens each, and 40 tokens embedded for each of them."""
    parts = {"embedder": {"name": EMBEDDER}}
    run = read_run(FakeRun(backbone="gpt4o_mini", parts=parts).write(tmp_path))
    assert not isinstance(run, Skipped)
    protocol = load_protocol("clag")
    assert "dollars" not in system_rows([run], protocol)[0].estimates  # its embeddings were not counted
    counted = replace(run, summary={**run.summary, "embeddings": {"tokens": 900, "by_phase": {"retrieve": 800}}})
    value = system_rows([counted], protocol)[0].estimates["dollars"].value
    assert value == pytest.approx(1000 * (115 * 0.15 + 5 * 0.60 + 40 * 0.02) / 1e6)
    (legend,) = (line for line in make_report([counted], protocol).legend if line.startswith("dollars: "))
    assert "per 1,000 questions; list prices of 2026-03 to 2026-07-03 (conf/prices.yaml)" in legend
    assert "paid embeddings included" in legend


def test_days_of_prices() -> None:
    assert dates_of([Price(1, 1, "2026-03"), None, Price(2, 2, "2026-03")]) == "2026-03"
    assert dates_of([Price(1, 1, "2026-03"), EmbeddingPrice(1)]) == "2026-03 to no date"
    assert dates_of([None]) == ""
