"""Common parts of command lines: exit statuses, messages of user errors, the option that names runs.

Every command starts by :func:`start`, and its ``main`` is an :func:`explains_errors`. What stops a command before that,
while it is being imported, is for :mod:`eval`.
"""

import argparse
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, ParamSpec, cast

from eval.commands.escaping import terminal
from eval.commands.places import check_current_folder, use_checkout
from eval.commands.terminal import complain
from memsys.assets.hints import of_source
from memsys.assets.paths import is_library
from memsys.credentials import redacted
from memsys.errors import MemoryRaisedError, MemsysError, UnreachableError

EXIT_DONE, EXIT_FAULT, EXIT_ERROR, EXIT_INCOMPLETE, EXIT_BUDGET, EXIT_DIFFERENT = 0, 1, 2, 3, 4, 5
EXIT_INTERRUPTED, EXIT_UNREAD = 130, 141
#: What every command's exit status says; docs/exit_codes.md has the same table.
EXIT_STATUSES = {
    EXIT_DONE: "done",
    EXIT_FAULT: (
        "an unexpected exception, in memsys or in your own memory or plug-in, with its traceback: please report one of "
        "memsys"
    ),
    EXIT_ERROR: "a setting, an argument or a file is wrong: one message says which, where, and what to do",
    EXIT_INCOMPLETE: "the work is not complete: what was done is kept, the same command continues",
    EXIT_BUDGET: "the budget is spent: what was done is kept, the same command with a larger budget continues",
    EXIT_DIFFERENT: (
        "two things that should agree differ, and nothing documented explains it (`parity`, `verify`), or a memory got "
        "worse (`gate`) or does something wrong (`check_memory`)"
    ),
    EXIT_INTERRUPTED: "stopped from the keyboard: what was done is kept, the same command continues",
    EXIT_UNREAD: "the output was closed by its reader (a closed pipe)",
}

#: Pages and scripts that an installed package lacks, where a help names them.
_OF_SOURCE = re.compile(r"\b(docs|scripts)/\w+\.(md|py)")

P = ParamSpec("P")


def explain(error: MemsysError) -> int:
    """Write the message of an error, with the user's own lines where their memory raised; returns the exit status."""
    complain(str(error))
    if isinstance(error, MemoryRaisedError):
        sys.stderr.write(redacted("".join(_own_lines(error.__cause__))))
        return EXIT_FAULT
    return EXIT_INCOMPLETE if isinstance(error, UnreachableError) else EXIT_ERROR


def _own_lines(error: BaseException | None) -> list[str]:
    """Return the traceback of an error, of libraries only the frame that was called first and the one that raised."""
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    last = len(frames) - 1
    kept = [one for place, one in enumerate(frames) if place in (0, last) or not is_library(Path(one.filename))]
    return traceback.StackSummary.from_list(kept).format()


@contextmanager
def one_message() -> Iterator[None]:
    """End the process with one message and its exit status where the block raises an error of ours or is interrupted.

    Raises:
        SystemExit: with the status.
    """
    try:
        yield
    except MemsysError as error:
        raise SystemExit(explain(error)) from error
    except KeyboardInterrupt as error:
        complain("interrupted")
        raise SystemExit(EXIT_INTERRUPTED) from error


def explains_errors(main: Callable[P, int]) -> Callable[P, int]:
    """Let a command end with one message and an exit status where it raises an error of ours or is interrupted."""

    @wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return main(*args, **kwargs)
        except MemsysError as error:
            return explain(error)
        except KeyboardInterrupt:
            complain("interrupted")
            return EXIT_INTERRUPTED

    return run


def start(main: Callable[[], object]) -> NoReturn:
    """Run a command as the process's only work, whatever standard output is.

    A full device is one message, a reader that has gone is none, and what the output's encoding does not have is
    replaced. Packages that add choices are imported first, so that every command knows their metrics.

    Args:
        main: returns the exit status, or anything else for 0.

    Raises:
        SystemExit: with the exit status.
    """
    from eval.commands.plugins import load_plugins

    use_safe_streams()
    sys.excepthook = _show_fault
    try:
        with one_message():
            check_current_folder()
            use_checkout()
            load_plugins()
            try:
                status = main()
            finally:
                sys.stdout.flush()
            raise SystemExit(status if isinstance(status, int) else 0)
    except SystemExit as end:
        _TASK_FAILURES.interrupted = end.code == EXIT_INTERRUPTED
        raise


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM, the polite kill, end the block as Ctrl-C does: what it opened is closed.

    In an event loop, where Ctrl-C cancels the work, so does SIGTERM: an exception would meet it at whatever line it is.

    Raises:
        KeyboardInterrupt: at either signal.
    """

    def end(number: int, frame: FrameType | None) -> None:
        by_ctrl_c = signal.getsignal(signal.SIGINT)  # a shell lets what it starts in the background ignore it
        (by_ctrl_c if callable(by_ctrl_c) else signal.default_int_handler)(number, frame)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def program(command: str) -> str:
    """Return how a command is called, in the way this one was: ``memsys NAME``, or ``python -m eval.NAME``."""
    return f"{'memsys ' if sys.argv[0].startswith('memsys ') else 'python -m eval.'}{command}"


def described(doc: str | None) -> str:
    """Return a module's docstring for its help, with single back-ticks around code.

    Pages and scripts are named as those of the source where memsys is an installed package.
    """
    return _OF_SOURCE.sub(lambda found: of_source(found[0]), (doc or "").replace("``", "`"))


def use_safe_streams() -> None:
    """Let standard output and standard error end the process in order where they cannot be written."""
    if sys.stderr is None:  # closed: whatever is opened next would be standard error to libraries
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (open to the end of the process)
    if sys.stdout is None:
        complain("standard output is closed; send it somewhere, if only to /dev/null, and start the command again")
        raise SystemExit(EXIT_ERROR)
    for stream in (sys.stdout, sys.stderr):
        cast(Any, stream).reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = cast(Any, _Output(sys.stdout)), cast(Any, _Messages(sys.stderr))
    logging.setLogRecordFactory(_SafeRecord)
    logging.getLogger("asyncio").addFilter(_TASK_FAILURES)


class _TaskFailures(logging.Filter):
    """Keeps what asyncio logs of failed tasks, and drops what it logs of tasks that ended because the process ends.

    Attributes:
        interrupted: the process ends by Ctrl-C; whatever became of its tasks is of no interest any longer.
    """

    interrupted = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is about a failure."""
        error = record.exc_info[1] if record.exc_info else None
        return not (self.interrupted or isinstance(error, KeyboardInterrupt | SystemExit))


_TASK_FAILURES = _TaskFailures()


class _SafeRecord(logging.LogRecord):
    """A line of a log, which may quote a server's reply: without keys and control characters."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:  # a handler takes the text that is there
            self.exc_text = redacted(logging.Formatter().formatException(self.exc_info))

    def getMessage(self) -> str:  # noqa: N802 (logging's name)
        """Return the message. Nothing is imported here: the last lines come while Python is shutting down."""
        return terminal(redacted(super().getMessage()))


class _Stream:
    """A text stream that says what becomes of its failures."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write."""
        try:
            return int(self._stream.write(text))
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        """Flush."""
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        """Write what is left nowhere, so that Python's own flush at the end does not fail again."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


class _Output(_Stream):
    """Standard output: a command whose results cannot be written ends."""

    def _failed(self, error: OSError) -> None:
        super()._failed(error)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(EXIT_UNREAD) from error
        complain(f"standard output cannot be written ({error.strerror}); redirect it and run the command again")
        raise SystemExit(EXIT_ERROR) from error


class _Messages(_Stream):
    """Standard error: if it cannot be written, nothing can be reported."""


def _show_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an unexpected exception, without keys."""
    sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))


def add_runs_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--runs``; without it a command reads :func:`eval.runs.folders.stored_folders`."""
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        action="extend",
        help="run directories or folders of them (default: results/runs and results/summaries)",
    )
