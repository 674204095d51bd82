"""SIGTERM ends a block of a command as Ctrl-C does."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from eval.commands.commands import terminated_as_interrupted


@pytest.fixture(autouse=True)
def heeds_ctrl_c() -> Iterator[None]:
    """A shell lets what it starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_either_signal_cancels_what_an_event_loop_does(number: signal.Signals) -> None:
    """No line between two waits is left half done."""
    done = []

    async def work() -> None:
        os.kill(os.getpid(), number)
        done.append("the line after the signal")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            done.append("cancelled")
            raise

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        asyncio.run(work())
    assert done == ["the line after the signal", "cancelled"]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("keyboard", [signal.default_int_handler, signal.SIG_IGN])
def test_sigterm_ends_what_is_in_no_event_loop(keyboard: object) -> None:
    signal.signal(signal.SIGINT, keyboard)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
