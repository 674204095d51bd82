"""Suggestions for mistyped names."""

from collections.abc import Iterable
from difflib import get_close_matches

#: More than this many suggestions are no help.
_MOST = 4


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names similar to a name, best first; a key is also known by its last part.

    Args:
        name: what was typed.
        known: names, dotted ones among them.
    """
    names = list(dict.fromkeys(known))
    last = name.rpartition(".")[2]
    by_last: dict[str, list[str]] = {}
    for each in names:
        by_last.setdefault(each.rpartition(".")[2], []).append(each)
    close = get_close_matches(name, names, _MOST, 0.7)
    for each in get_close_matches(last, by_last, _MOST, 0.65):
        close += by_last[each]
    close += [each for each in names if len(last) > 2 and each.startswith(f"{name}_")]
    return list(dict.fromkeys(close))[:_MOST]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean a, b?`` without its end, to append to a message; empty without similar names."""
    close = close_names(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""
