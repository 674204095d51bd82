"""Reading replies within bounds: none over a limit, short ones at once, long ones in a process beside the event loop.

Repairing JSON takes time that grows with the square of some texts' length, and milliseconds for each character of
others; in the event loop nothing else would go on meanwhile, time-outs included.
"""

import asyncio
import atexit
import multiprocessing
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, NamedTuple

from memsys.llm.structured import Parsed, parse_object
from memsys.vocabulary import Json

#: Characters of a reply that is read in the event loop whatever it holds: the worst takes a third of a second.
INLINE_CHARS = 1_000
#: Characters of a malformed reply that a memory system still reads in place, by repair: over all that a role's
#: ``max_tokens`` allow.
_SALVAGED_CHARS = 16_000
#: Objects and lists in it: each level that stays open makes the repair of all that follows slower.
_SALVAGED_OPENINGS = 200
#: A process that says nothing for so many times its limit of processor time is stuck where no signal reaches it.
_PATIENCE = 20.0


class Bounds(NamedTuple):
    """Limits of what is read.

    Attributes:
        chars: characters of a reply without thinking; a longer one is malformed.
        seconds: processor time that one reply may take; one that takes longer is malformed.
    """

    chars: int
    seconds: float


async def parse_within(
    bounds: Bounds, text: str, schema: Mapping[str, Json], *, repair: bool, cut: bool = True
) -> Parsed:
    """Do what :func:`memsys.llm.structured.parse_object` does, within bounds and without holding up the event loop."""
    if len(text) > bounds.chars:
        return Parsed(None, problem=f"{len(text)} characters, over the limit of {bounds.chars}")
    if len(text) <= INLINE_CHARS:
        return parse_object(text, schema, repair=repair, cut=cut)
    plain = parse_object(text, schema, repair=False, cut=cut)
    if plain.value is not None or not repair or "{" not in text:
        return plain
    return await asyncio.to_thread(_WORKER.parse, text, schema, cut, bounds.seconds)


def salvaged(
    text: str, schema: Mapping[str, Json], *, repair: bool = True, cut: bool = True
) -> Mapping[str, Any] | None:
    """Read what can be read of a reply that its role's schema refused, in place; a long one is not repaired.

    Args:
        text: the reply without thinking.
        schema: what is enough of an object.
        repair: whether cut or broken JSON may be repaired.
        cut: whether the outermost braces may be cut out.
    """
    if len(text) > _SALVAGED_CHARS or text.count("{") + text.count("[") > _SALVAGED_OPENINGS:
        return None
    return parse_object(text, schema, repair=repair, cut=cut).value


class _Worker:
    """A process that repairs one reply at a time; started with the first, and anew after it had to be killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def parse(self, text: str, schema: Mapping[str, Json], cut: bool, seconds: float) -> Parsed:
        with self._lock:
            try:
                connection = self._open()
                connection.send((text, schema, cut, seconds))
                if connection.poll(_PATIENCE * seconds):
                    parsed: Parsed = connection.recv()
                    return parsed
            except (EOFError, OSError):
                pass  # the process died of this reply, of its memory for instance
            self.close()
            return Parsed(None, problem="reading it ended the process that read it")

    def _open(self) -> Connection:
        if self._connection is None or self._process is None or not self._process.is_alive():
            self.close()
            context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
            ours, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True, name="memsys-replies")
            self._process.start()
            theirs.close()  # so that it sees the end of the pipe when this process ends, however it ends
            self._connection = ours
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None


_WORKER = _Worker()
atexit.register(_WORKER.close)


class _OutOfTimeError(Exception):
    """The reply took its processor time."""


def _serve(connection: Connection) -> None:
    """Repair replies until the other end of the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, _out_of_time)
    while True:
        try:
            text, schema, cut, seconds = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(_parse_timed(text, schema, cut, seconds))


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTimeError


def _parse_timed(text: str, schema: Mapping[str, Json], cut: bool, seconds: float) -> Parsed:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return parse_object(text, schema, repair=True, cut=cut)
    except _OutOfTimeError:
        return Parsed(None, problem=f"repairing it took over {seconds} s")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
