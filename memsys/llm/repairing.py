"""A child process that repairs malformed JSON, one reply at a time.

It is a program of its own (``python -c``) and no child of :mod:`multiprocessing`: that imports the main script of its
parent again, and a script without ``if __name__ == "__main__"`` would run a second time, its calls included.
"""

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType

from memsys.assets.paths import ROOT
from memsys.errors import MemsysError
from memsys.llm.structured import Parsed, parse_object
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

#: A process that says nothing for this many times its limit of processor time is stuck where no signal reaches it.
_PATIENCE = 20.0
#: Seconds until a new process must have taken its first reply, on a busy machine too.
_START_SECONDS = 60.0
#: What the process answers at once when it has taken a reply: if it ends after that, the reply may be the reason.
_TAKEN = "taken"
_WHAT_TO_DO = (
    "check that memory, processes (ulimit -u) and open files (ulimit -n) are available, and run the same command again"
)
_PROGRAM = "import sys; from memsys.llm.repairing import serve; serve(int(sys.argv[1]))"


class _EndedError(Exception):
    """The process ended, or is stuck.

    Attributes:
        taken: whether it had taken the reply.
    """

    def __init__(self, message: str, *, taken: bool) -> None:
        super().__init__(message)
        self.taken = taken


class RepairProcess:
    """Started with the first reply, and again after it had to be killed; several threads may use it in turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def parse(self, text: str, schema: Mapping[str, Json], *, cut: bool, seconds: float) -> Parsed:
        """Do what :func:`memsys.llm.structured.parse_object` does, with repair.

        A process that ends may have been killed from outside: a second one reads the reply again. Only a reply that
        ends both has no value for that.

        Args:
            text: the reply without thinking.
            schema: JSON schema of the object.
            cut: whether the outermost braces may be cut out.
            seconds: of processor time; a reply that takes longer, or ends the process, has no value and a ``problem``.

        Raises:
            MemsysError: no process can be started, or two in turn ended before they took the reply.
        """
        with self._lock:
            try:
                return self._ask(text, schema, cut, seconds)
            except _EndedError as error:
                logger.warning("%s; another one reads the reply", error)
            try:
                return self._ask(text, schema, cut, seconds)
            except _EndedError as error:
                if not error.taken:
                    raise MemsysError(f"{error}, twice, before it took a reply; {_WHAT_TO_DO}") from error
                logger.warning("%s, for the second time: the reply, of %d characters, is malformed", error, len(text))
                return Parsed(None, problem="reading it ended the process that read it")

    def _ask(self, text: str, schema: Mapping[str, Json], cut: bool, seconds: float) -> Parsed:
        """Send a reply to the process and return what it read.

        Raises:
            MemsysError: it cannot be started.
            _EndedError: it ended, or had to be killed.
        """
        connection = self._open()
        patience, taken = _PATIENCE * seconds, False
        try:
            connection.send((text, schema, cut, seconds))
            while connection.poll(patience if taken else max(patience, _START_SECONDS)):
                said: Parsed | str = connection.recv()
                if isinstance(said, Parsed):
                    return said
                taken = True
            problem = "is stuck"
        except (EOFError, OSError):
            problem = "has ended"
        self.close()
        raise _EndedError(f"the process that repairs malformed replies {problem}", taken=taken)

    def close(self) -> None:
        """End the process; the next reply starts another. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None

    def _open(self) -> Connection:
        """Return the connection to the process; start it if needed.

        Raises:
            MemsysError: it cannot be started.
        """
        if self._connection is None or self._process is None or self._process.poll() is not None:
            self.close()
            try:
                self._connection, theirs = Pipe()
                # Closed here once it is handed on, so that the process sees the pipe's end however this one ends.
                with theirs:
                    self._process = subprocess.Popen(
                        [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                        stdin=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(ROOT), *filter(None, sys.path)])},
                    )
            except OSError as error:
                self.close()
                raise MemsysError(
                    f"the process that repairs malformed replies cannot be started ({error.strerror}); {_WHAT_TO_DO}"
                ) from error
        return self._connection


#: The one of this process.
REPAIR_PROCESS = RepairProcess()
atexit.register(REPAIR_PROCESS.close)


class _OutOfTimeError(Exception):
    """The reply took its processor time."""


def serve(descriptor: int) -> None:
    """Repair replies until the other end of the pipe closes; what the process runs.

    Args:
        descriptor: of the pipe's end that this process was handed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, _out_of_time)
    with Connection(descriptor) as connection:
        while True:
            try:
                text, schema, cut, seconds = connection.recv()
            except (EOFError, OSError):
                return
            connection.send(_TAKEN)
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
