"""Questions to the person at the terminal, before something is fetched or paid."""

import sys

_YES = ("y", "yes")


def can_ask() -> bool:
    """Return whether a user at a terminal can read and answer a question."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask on standard error whether to do something; no answer at all, as at the end of the input, is a no.

    Args:
        question: without what may be answered.
        default: meaning of an empty line.
    """
    sys.stderr.write(f"{question} [{'Y/n' if default else 'y/N'}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in (*_YES, *([""] if default else []))
