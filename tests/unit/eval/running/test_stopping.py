"""Signals of batch systems: the run ends in order, then whoever was to handle the signal gets it."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import FrameType

import pytest

from eval.running.backbones import BackboneSelection, Serving, connect
from eval.running.stopping import StopRequest
from memsys.errors import BackboneError
from memsys.llm.engines.contract import Endpoint
from memsys.llm.ledger import CallRecord
from tests.support.backbones import StubEngine, backbone_config


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


class WaitingEngine(StubEngine):
    """Waits for its server, when it starts or when it is to come back, until it is stopped."""

    def __init__(self, *, starts: bool) -> None:
        super().__init__(["http://127.0.0.1:9/v1"])
        self._starts, self._stopped, self.waits = starts, threading.Event(), threading.Event()

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        return super().start(log_dir) if self._starts else self._wait()

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        return self._wait()

    def stop(self) -> None:
        self._stopped.set()

    def _wait(self) -> Sequence[Endpoint]:
        self.waits.set()
        assert self._stopped.wait(30), "nobody stopped it"
        raise BackboneError("stopped")


class Folder:
    """Where calls and logs of a run go; here nowhere."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add_call(self, call: CallRecord) -> None:
        raise AssertionError("no call is answered")

    add_paid = add_call


@pytest.mark.parametrize("starts", [False, True], ids=["starting", "coming_back"])
def test_a_run_that_ends_does_not_wait_for_its_server(tmp_path: Path, starts: bool) -> None:
    """Its thread would keep the event loop from ending: for as long as vLLM loads a model, minutes after Ctrl-C."""
    engine = WaitingEngine(starts=starts)

    class Config:
        def build(self) -> StubEngine:
            return engine

    serving = Serving(shared=False, folder=tmp_path, wait_s=1, idle_s=1)
    choice = BackboneSelection(backbone_config(engine=Config()), None, (), serving, 0)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            opened = await connect(choice, stack, Folder(tmp_path), lambda: None)
            await opened.main._transport.send("/completions", {}, lambda payload, seconds: None)

    async def ended() -> None:
        running = asyncio.create_task(run())
        await asyncio.to_thread(engine.waits.wait)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    began = time.monotonic()
    asyncio.run(ended())
    assert time.monotonic() - began < 25
