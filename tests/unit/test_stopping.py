"""Signals of batch systems: the run ends in order, then whoever was to handle the signal gets it."""

import asyncio
import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from eval.running.stopping import StopRequest


class BatchSystemError(RuntimeError):
    """What a batch library throws into the main thread."""


@pytest.fixture
def handler() -> Iterator[list[int]]:
    """Installs a handler as submitit does; gives the signals it got."""
    got: list[int] = []

    def raise_it(number: int, frame: FrameType | None) -> None:
        got.append(number)
        raise BatchSystemError("timed out")

    before = signal.signal(signal.SIGUSR2, raise_it)
    yield got
    signal.signal(signal.SIGUSR2, before)


def run_until(number: signal.Signals, stop: StopRequest) -> list[str]:
    """A run that gets a signal in the middle of callbacks, whose errors an event loop only logs."""
    events: list[str] = []

    async def run() -> None:
        with stop.watched():
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
            try:
                await asyncio.sleep(30)
            finally:
                events.append("files closed")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    return events


def test_the_run_ends_first_and_then_the_handler_gets_its_signal(handler: list[int]) -> None:
    stop = StopRequest()
    assert run_until(signal.SIGUSR2, stop) == ["files closed"]
    assert handler == []
    with pytest.raises(BatchSystemError):
        stop.hand_over()
    assert handler == [signal.SIGUSR2]
    with pytest.raises(BatchSystemError):  # the handler is back in its place
        signal.raise_signal(signal.SIGUSR2)


def test_a_polite_kill_ends_the_run_and_nobody_else_hears_of_it() -> None:
    stop = StopRequest()
    assert run_until(signal.SIGTERM, stop) == ["files closed"]
    stop.hand_over()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_polite_kill_that_a_batch_library_ignores_stays_ignored() -> None:
    ignored: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: ignored.append(number))

    async def run() -> str:
        with StopRequest().watched():
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.05)
            return "went on"

    try:
        assert asyncio.run(run()) == "went on" and ignored == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
