"""Requests to stop: what batch systems send before they end a job, turned into an orderly end of the run.

A batch library answers its signal by raising an exception at whatever line the main thread is at. In an event loop that
line may be one whose errors the loop only logs, and the request is lost. So while a run is on, the signal cancels the
run instead; once files are closed, the original handler gets the signal and ends or requeues the job.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

#: SIGTERM is the polite kill; the others are what Slurm is asked to send before a time limit or a preemption.
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class StopRequest:
    """The first signal that asked a run to stop, and the handler it was meant for."""

    def __init__(self) -> None:
        self._signal: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Let signals cancel the current task for the length of a ``with`` block.

        A SIGTERM with a handler is left to it: batch libraries ignore it on purpose, since their own signal
        comes as well. A user's signal without a handler keeps its default: the end of the process.
        """
        if threading.current_thread() is not threading.main_thread():  # signals are for the main thread's program
            yield
            return
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        ours = [number for number in _SIGNALS if callable(before[number]) != (number == signal.SIGTERM)]
        self._handlers = {number: handler for number in ours if callable(handler := before[number])}

        def stop(number: signal.Signals) -> None:
            if self._signal is None:
                self._signal = number
                task.cancel()

        for number in ours:
            loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            for number in ours:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def hand_over(self) -> None:
        """Give the signal to the handler it was meant for, which usually does not come back."""
        if self._signal in self._handlers:
            self._handlers[self._signal](self._signal, None)
