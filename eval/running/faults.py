"""Faults of a memory system or of memsys: which question or conversation they are of, and one error for many."""

from collections import Counter
from collections.abc import Iterator
from types import TracebackType

#: Begins the note that says what an error is of.
_AT = "at "


class AtWork:
    """Context manager that notes on an error, or on each error of a group, what was being processed.

    Args:
        kind: ``question`` or ``conversation``.
        name: its id.
    """

    def __init__(self, kind: str, name: str) -> None:
        self._note = f"{_AT}{kind} {name}"

    def __enter__(self) -> None:
        """Do nothing on entry."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Add the note."""
        for each in _plain(error):
            if not _note_of(each):
                each.add_note(self._note)


def first_fault(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, with a note on all: how many of what failed, and the first."""
    first, line = next(_plain(group)), fault_line(group)
    first.__notes__ = [note for note in getattr(first, "__notes__", []) if note != _note_of(first)]
    first.add_note(line)
    return first


def fault_line(error: BaseException) -> str:
    """Return a line with the numbers of failed questions or conversations by error, without the messages."""
    errors = list(_plain(error))
    where = _note_of(errors[0]).removeprefix(_AT)
    counts = Counter((type(each).__name__, (_note_of(each).removeprefix(_AT) or "task").split()[0]) for each in errors)
    failed = ", ".join(
        f"{count} {kind}{'' if count == 1 else 's'} failed with {name}" for (name, kind), count in counts.items()
    )
    return f"{failed}; the first is {where}" if where else failed


def _plain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the errors inside nested groups, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _plain(each)
    elif error is not None:
        yield error


def _note_of(error: BaseException) -> str:
    return next((note for note in getattr(error, "__notes__", []) if note.startswith(_AT)), "")
