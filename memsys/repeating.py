"""Call a function repeatedly in a thread of its own."""

import threading
from collections.abc import Callable


class RepeatedCall:
    """Calls a function every N seconds, from a thread of its own.

    Args:
        call: what is called; it must not raise.
        seconds: between two calls, and before the first.
        name: of the thread.
    """

    def __init__(self, call: Callable[[], None], seconds: float, name: str) -> None:
        self._call, self._seconds = call, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)

    def start(self) -> "RepeatedCall":
        """Start the calls; :meth:`stop` ends them."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Call no more, and wait for a call under way; safe to call twice, not before :meth:`start`."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            self._call()
