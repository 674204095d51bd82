"""A memory of one's own conversation, for programs without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from eval.api.memory import NOT_OPEN, AsyncMemory, TurnLike, open_async_memory
from eval.running.reader import Answer
from memsys.errors import ConfigError
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Retrieval

P = ParamSpec("P")
T = TypeVar("T")


class Memory:
    """A memory whose methods wait for their results: ``with open_memory("rag", backbone=None) as memory``.

    It works in an event loop of its own, in a thread that ends with the ``with`` block, and so also inside a notebook.
    See :class:`eval.api.memory.AsyncMemory` for what the methods do.
    """

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memsys", daemon=True)

    def __enter__(self) -> "Memory":
        """Open the backbone."""
        self._thread.start()
        with ExitStack() as opened:  # ends what was begun if the backbone does not open
            opened.callback(self._stop)
            opened.callback(lambda: self._wait(self._memory.__aexit__(None, None, None)))
            self._wait(self._memory.__aenter__())
            opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the backbone and end the thread."""
        try:
            self._wait(self._memory.__aexit__(kind, error, trace))
        finally:
            self._stop()

    @property
    def calls(self) -> list[CallRecord]:
        """Every call of the backbone so far."""
        return self._memory.calls

    def add(self, turns: Iterable[TurnLike]) -> None:
        """Add turns; those of one call are one session."""
        self._memory.add(turns)

    def retrieve(self, query: str) -> Retrieval:
        """Find what helps to answer a query."""
        return self._wait(self._memory.retrieve(query))

    def answer(self, question: str) -> Answer:
        """Answer a question from the memory."""
        return self._wait(self._memory.answer(question))

    def statistics(self) -> Mapping[str, Any]:
        """Return the statistics of building the memory."""
        return self._wait(self._memory.statistics())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise ConfigError(NOT_OPEN)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _blocking(make: Callable[P, AsyncMemory]) -> Callable[P, Memory]:
    """Make a memory of what ``make`` returns; the arguments are those of ``make``."""

    @wraps(make, assigned=("__doc__", "__annotations__"))
    def made(*args: P.args, **kwargs: P.kwargs) -> Memory:
        return Memory(make(*args, **kwargs))

    return made


#: As :func:`eval.api.memory.open_async_memory`, for a plain ``with``.
open_memory = _blocking(open_async_memory)
