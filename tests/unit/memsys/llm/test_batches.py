"""Calls in batches: one batch for independent calls, the rest at once, and no reply paid twice however a run ends."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsys.errors import BackboneError, BackboneUnusableError, BudgetSpentError
from memsys.llm.backbone import Backbone
from memsys.llm.batches import Batches
from memsys.llm.budget import Budget, SpendingMeter
from memsys.llm.cache import ReplyCache
from memsys.llm.contract import Reply
from memsys.llm.engines.contract import BatchTimes
from memsys.llm.engines.openai_batch import OpenAIBatchEngineConfig
from memsys.llm.ledger import CallRecord
from memsys.llm.outcomes import reason_of
from memsys.llm.refusals import RequestRefusedError
from memsys.vocabulary import Json
from tests.support.backbones import backbone_config, enter, role
from tests.support.batch_process import BatchProcess, batch_process
from tests.support.stub_process import ROOT


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BatchProcess]:
    with batch_process(tmp_path / "state") as running:
        yield running


def opened(server: BatchProcess, folder: Path, rows: list[CallRecord] | None = None) -> Backbone:
    engine = OpenAIBatchEngineConfig(
        base_urls=[server.url], model="m", api_key_env=None, quiet_s=0.1, poll_s=0.05
    ).build()
    on_call = None if rows is None else rows.append
    config = backbone_config(max_in_flight=2, token_counter="characters")
    cache = ReplyCache(folder / "cache")
    return Backbone(config, engine, cache=cache, on_call=on_call, log_dir=folder, run_seed=0)


async def ask(backbone: Backbone, count: int, first: int = 0) -> list[Reply]:
    model = backbone.bind("c1")
    numbers = range(first, first + count)
    return await asyncio.gather(*(model.ask(role(), {"text": f"turn {n}"}, key=str(n)) for n in numbers))


def test_answers_are_one_batch_and_a_memorys_own_calls_go_at_once(server: BatchProcess, tmp_path: Path) -> None:
    rows: list[CallRecord] = []

    async def go() -> list[Reply]:
        async with opened(server, tmp_path, rows) as backbone:
            enter("write")
            await ask(backbone, 3, first=100)
            enter("answer")
            server.finish()
            found = await ask(backbone, 40)
            assert backbone.counters.batched.prompt_tokens == sum(row.prompt_tokens for row in rows[3:])
        return found

    replies = asyncio.run(go())
    assert len({reply.text for reply in replies}) > 1 and not any(reply.malformed for reply in replies)
    assert [len(batch["keys"]) for batch in server.lines("created")] == [40] and len(server.lines("asked")) == 3
    assert [row.batched for row in rows] == [False] * 3 + [True] * 40
    assert {row.request_hash for row in rows[3:]} == set(server.lines("created")[0]["keys"])


def test_a_batch_costs_its_share(server: BatchProcess, tmp_path: Path) -> None:
    class Price:
        def of(self, prompt: float, completion: float, cached: float = 0, *, batch: bool = False) -> float:
            return (prompt + completion) * (0.5 if batch else 1.0)

    async def go() -> Budget:
        backbone, budget = opened(server, tmp_path), Budget(dollars=1_000_000.0)
        backbone.meter = SpendingMeter(budget, Price())
        enter("judge")
        server.finish()
        async with backbone:
            await ask(backbone, 2)
        return budget

    budget = asyncio.run(go())
    assert budget.spent_dollars == budget.spent_tokens / 2 > 0


def most_of_a_call() -> int:
    return len(role().prompt.render({"text": "turn 0"})) // 4 + 1 + role().max_tokens


def limited(server: BatchProcess, folder: Path, tokens: int) -> Backbone:
    backbone = opened(server, folder)
    backbone.meter = SpendingMeter(Budget(tokens=tokens))
    return backbone


def test_a_batch_is_no_larger_than_what_the_budget_pays(server: BatchProcess, tmp_path: Path) -> None:
    async def go(tokens: int) -> None:
        enter("answer")
        server.finish()
        async with limited(server, tmp_path, tokens) as backbone:
            await ask(backbone, 5)

    with pytest.raises(BudgetSpentError, match="may not pay one more call of a batch: "):
        asyncio.run(go(most_of_a_call() + 1))  # then less is left than one more may cost
    asyncio.run(go(2 * most_of_a_call()))
    assert [len(batch["keys"]) for batch in server.lines("created")] == [1, 2, 1, 1]


def test_a_call_that_is_written_again_does_not_wait_for_itself(server: BatchProcess, tmp_path: Path) -> None:
    async def go() -> int:
        enter("answer")
        server.finish()
        async with limited(server, tmp_path, 3 * most_of_a_call() // 2) as backbone:
            send = backbone._transport.send
            refused = iter([RequestRefusedError("Unsupported parameter: seed is not supported")])

            async def once_refused(*arguments: Any, **more: Any) -> Any:
                if (error := next(refused, None)) is not None:
                    raise error
                return await send(*arguments, **more)

            backbone._transport.send = once_refused  # type: ignore[method-assign]
            return len(await asyncio.wait_for(ask(backbone, 1), timeout=20))

    assert asyncio.run(go()) == 1


def test_replies_of_a_batch_found_again_wait_for_who_asks_later(server: BatchProcess, tmp_path: Path) -> None:
    async def go() -> None:
        enter("answer")
        async with opened(server, tmp_path) as backbone:
            asking = asyncio.create_task(ask(backbone, 2))
            while not server.lines("created"):
                await asyncio.sleep(0.02)
            asking.cancel()
        server.finish()
        async with opened(server, tmp_path) as backbone:
            for number in range(2):
                await ask(backbone, 1, first=number)

    asyncio.run(go())
    assert len(server.lines("created")) == 1


def test_a_batch_that_is_cancelled_is_not_made_again_unasked(server: BatchProcess, tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(server, tmp_path) as backbone:
            enter("answer")
            await ask(backbone, 3)

    (server.state / "cancel").touch()
    with pytest.raises(BackboneUnusableError, match=r"the batch batch-0 was cancelled; run the same command"):
        asyncio.run(go())
    assert len(server.lines("created")) == 1
    (server.state / "cancel").unlink()
    server.finish()
    asyncio.run(go())
    assert [len(batch["keys"]) for batch in server.lines("created")] == [3, 2]  # it had answered one


ASKS = """
import asyncio, sys
from pathlib import Path
from tests.support.backbones import enter
from tests.support.batch_process import BatchProcess
from tests.unit.memsys.llm.test_batches import ask, opened

async def go():
    async with opened(BatchProcess(sys.argv[1], Path(sys.argv[2])), Path(sys.argv[3])) as backbone:
        enter("answer")
        await ask(backbone, 5)

asyncio.run(go())
"""


@pytest.mark.parametrize("known", [True, False])
def test_who_is_killed_while_waiting_waits_for_the_same_batch(
    server: BatchProcess, tmp_path: Path, known: bool
) -> None:
    command = [sys.executable, "-c", ASKS, server.url, str(server.state), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        deadline = time.monotonic() + 60
        while not server.lines("created") and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.kill()

    async def go_on() -> list[Reply]:
        async with opened(server, tmp_path) as backbone:
            enter("answer")
            return await ask(backbone, 7)

    (file,) = (tmp_path / "cache" / "batches").glob("*.json")
    if not known:  # killed before the server's reply came
        file.write_text(json.dumps({**json.loads(file.read_text()), "batch_id": ""}))
    server.finish()
    assert len(asyncio.run(go_on())) == 7
    assert [len(batch["keys"]) for batch in server.lines("created")] == [5, 2]  # two more questions


def test_a_batch_that_was_never_created_is_sent_again(server: BatchProcess, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "batches"
    folder.mkdir(parents=True)

    async def go() -> list[Reply]:
        rows: list[CallRecord] = []
        async with opened(server, tmp_path / "other", rows) as backbone:
            enter("answer")
            await ask(backbone, 1)
        row = {"name": "gone", "server": server.url, "keys": [rows[0].request_hash]}
        (folder / "gone.json").write_text(json.dumps(row))
        async with opened(server, tmp_path) as backbone:
            return await ask(backbone, 1)

    server.finish()
    assert len(asyncio.run(go())) == 1 and len(server.lines("created")) == 2
    assert not (folder / "gone.json").exists()


@pytest.mark.parametrize(
    ("code", "batches", "outcome", "reason"),
    [
        ("batch_expired", 2, "answered", ""),
        ("content_filter", 1, "withheld", "finish_reason content_filter: this one was not answered"),
    ],
)
def test_what_a_batch_leaves_out_is_asked_in_another_one_where_that_may_help(
    server: BatchProcess, tmp_path: Path, code: str, batches: int, outcome: str, reason: str
) -> None:
    async def go() -> list[Reply]:
        async with opened(server, tmp_path) as backbone:
            enter("answer")
            asking = asyncio.create_task(ask(backbone, 3))
            while not server.lines("created"):
                await asyncio.sleep(0.02)
            (server.state / "lose").write_text(f"{server.lines('created')[0]['keys'][1]} {code}")
            server.finish()
            return await asking

    first, second, third = asyncio.run(go())
    assert (first.outcome, second.outcome, third.outcome) == ("answered", outcome, "answered")
    assert reason_of(second.outcome, second.completion) == reason
    created = [batch["keys"] for batch in server.lines("created")]
    assert len(created) == batches and created[1:] == [[created[0][1]]][: batches - 1]


def test_a_server_without_batches_is_named_with_the_engine_to_choose(server: BatchProcess, tmp_path: Path) -> None:
    elsewhere = replace(server, url=server.url.replace("/v1", "/none/v1"))

    async def go() -> None:
        async with opened(elsewhere, tmp_path) as backbone:
            enter("answer")
            await ask(backbone, 2)

    with pytest.raises(BackboneUnusableError, match=r"no batches \(there is no http:.*/none/v1/files\);"):
        asyncio.run(go())


class OddPages:
    """Pages that wrap what they return."""

    async def page(self, path: str, body: Json = None, *, file: bytes = b"", largest: int = 0) -> bytes:
        return b'{"job": {"id": "1", "status": "COMPLETED"}}'


def test_pages_of_another_kind_are_an_error_and_no_wait_without_end(tmp_path: Path) -> None:
    async def go() -> None:
        batches = Batches(tmp_path, "s", OddPages(), BatchTimes(0, 0))
        await asyncio.wait_for(batches.answer("/chat/completions", b"{}", "key"), timeout=10)

    with pytest.raises(BackboneUnusableError, match=r"not like OpenAI's \(KeyError: 'id'\); backbone/engine=openai"):
        asyncio.run(go())


def test_a_request_that_no_batch_answers_is_an_error_in_the_servers_words(server: BatchProcess, tmp_path: Path) -> None:
    """It said that the batch was completed without this reply."""

    async def go() -> None:
        async with opened(server, tmp_path) as backbone:
            enter("answer")
            asking = asyncio.create_task(ask(backbone, 1))
            for number in range(3):  # backbone.transport_retries=2
                while len(server.lines("created")) <= number:
                    await asyncio.sleep(0.02)
                (server.state / "lose").write_text(f"{server.lines('created')[0]['keys'][0]} inference_failed")
                server.finish()
                while (server.state / "lose").exists():
                    await asyncio.sleep(0.02)
                (server.state / "open").unlink()
            await asking

    with pytest.raises(BackboneError, match="failed 3 times, last: status 500: this one was not answered"):
        asyncio.run(go())
