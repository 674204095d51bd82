"""Slots go by phase, then by arrival; none is lost to a cancelled waiter."""

import asyncio
from collections.abc import Sequence

import pytest

from memsys.errors import BackboneUnusableError, first_error
from memsys.llm.limiter import Limiter


async def finish_order(arrivals: Sequence[tuple[str, str]]) -> list[str]:
    """Let the arrivals queue behind one holder of the only slot; returns the order they were served in."""
    limiter, order, hold = Limiter(1), [], asyncio.Event()

    async def holder() -> None:
        async with limiter.slot("write"):
            await hold.wait()

    async def waiter(phase: str, name: str) -> None:
        async with limiter.slot(phase) as waited:
            order.append(name)
            assert waited > 0

    async with asyncio.TaskGroup() as group:
        group.create_task(holder())
        await asyncio.sleep(0)
        for phase, name in arrivals:
            group.create_task(waiter(phase, name))
        await asyncio.sleep(0.01)
        hold.set()
    return order


def test_writes_before_questions_before_preparation() -> None:
    arrivals = [
        ("prepare", "p1"), ("answer", "a1"), ("write", "w1"), ("prepare", "p2"),
        ("retrieve", "r1"), ("consolidate", "c1"), ("judge", "j1"), ("write", "w2"),
    ]  # fmt: skip
    assert asyncio.run(finish_order(arrivals)) == ["w1", "c1", "w2", "a1", "r1", "j1", "p1", "p2"]


def test_never_more_than_the_slots_and_all_are_used() -> None:
    async def run() -> tuple[int, int, int]:
        limiter, busy, most = Limiter(3), 0, 0

        async def one() -> None:
            nonlocal busy, most
            async with limiter.slot("prepare"):
                busy += 1
                most = max(most, busy)
                assert limiter.held == busy
                await asyncio.sleep(0.001)
                busy -= 1

        await asyncio.gather(*(one() for _ in range(20)))
        return most, busy, limiter.held

    assert asyncio.run(run()) == (3, 0, 0)


def test_cancelled_waiters_lose_no_slot() -> None:
    async def run() -> None:
        limiter, release = Limiter(1), asyncio.Event()

        async def hold() -> None:
            async with limiter.slot("write"):
                await release.wait()
            waiting[1].cancel()  # its slot is its own already, its task has not run yet

        async def take() -> None:
            async with limiter.slot("write"):
                pass

        holder = asyncio.create_task(hold())
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # while it waits
        release.set()
        await holder
        await asyncio.gather(*waiting, return_exceptions=True)
        assert waiting[1].cancelled() and not waiting[2].cancelled()
        await asyncio.wait_for(take(), 1)

    asyncio.run(run())


@pytest.mark.parametrize("grouped", [False, True])
def test_nobody_is_sent_after_a_holder_that_found_the_backbone_unusable(
    grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = BackboneUnusableError("no credit")

    async def run() -> list[str]:
        limiter, sent = Limiter(1), list[str]()

        async def ask(name: str) -> None:
            async with limiter.slot("answer"):
                sent.append(name)
                await asyncio.sleep(0.01)
                raise ExceptionGroup("", [error]) if grouped else error

        found = await asyncio.gather(*(ask(name) for name in "abc"), return_exceptions=True)
        assert [str(first_error(one)) for one in found if one] == ["no credit"] * 3
        with pytest.raises(BackboneUnusableError):
            await ask("next")
        monkeypatch.setattr("memsys.llm.limiter._UNUSABLE_SECONDS", 0.0)
        with pytest.raises((BackboneUnusableError, ExceptionGroup)):
            await ask("later")  # what comes seconds later tries for itself
        return sent

    assert asyncio.run(run()) == ["a", "later"]
