"""Errors a user can act on. Each message says what went wrong, where, and what to do about it."""


class MemsysError(Exception):
    """Base of every error of the harness; ``eval.run`` prints its message without a traceback."""


class UnreachableError(MemsysError):
    """A server cannot be reached, or is gone: what was done is kept, and the same command continues."""


class ConfigError(MemsysError):
    """A setting is wrong: names the key, the value and the choices."""


class DataError(MemsysError):
    """A data file is missing, truncated or of the wrong shape: names file, JSON path and field."""


class DownloadError(DataError, UnreachableError):
    """A data file could not be downloaded to its end."""


class AssetError(MemsysError):
    """A model or corpus file is missing or its checksum is wrong."""


class BackboneError(MemsysError):
    """The language model cannot be reached, refuses, or answers with something that is not a completion.

    Raised after the retries on transport errors. It stops the run, which stays resumable: a failed call is never
    turned into an empty reply.
    """


class BackboneUnusableError(BackboneError):
    """No call of the run can be answered: no credit, a key or a model that is refused, or replies that answer nothing.

    It ends the run at once, which stays resumable.
    """


class BudgetSpentError(MemsysError):
    """A run has spent what it may; it stops when the calls in flight are done, and stays resumable."""


class RunDirectoryError(MemsysError):
    """The run directory is in use, holds another configuration, or cannot be written."""


class ScoringError(MemsysError):
    """A score cannot be computed with what is installed or stored."""


class MemoryProtocolError(MemsysError):
    """A memory system lacks a method of the protocol, or gives what the protocol does not allow."""


class MemoryRaisedError(MemoryProtocolError):
    """A memory that the user wrote raised an exception: the cause, whose traceback begins in the user's code."""


class MemoryServerError(MemoryProtocolError, UnreachableError):
    """The server of a memory cannot be reached, or has lost what it held."""


class WorkerError(MemsysError):
    """A package's worker raised, hangs, or answered with something that is not a reply; the run stays resumable."""


class WorkerEndedError(WorkerError):
    """A package's worker has ended without being asked to."""


def first_error(error: BaseException) -> BaseException:
    """Return the first plain error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def quoted(value: object, longest: int = 100) -> str:
    """Return a value as Python writes it, for a message; one of more than ``longest`` characters is cut and says so."""
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]} ..."
